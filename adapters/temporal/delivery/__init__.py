"""What deliveries need of Temporal itself."""
