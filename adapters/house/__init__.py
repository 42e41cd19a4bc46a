"""Looking after what is kept on disk."""
