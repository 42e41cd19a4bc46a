"""What a person decides: asked on the terminal, answered by a command, and sent to the build."""
