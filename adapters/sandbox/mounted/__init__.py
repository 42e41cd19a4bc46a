"""What the sandbox "mount" is made of: copies of folders, and processes that are found by where they work."""
