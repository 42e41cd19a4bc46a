"""HTTP, without anything about notes."""
