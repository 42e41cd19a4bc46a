"""What of a worker process is put together beside ``worker.py``."""
