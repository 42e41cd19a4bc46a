"""What each worker process serves, a module a class, and what it shows of itself."""
