"""What a namespace of Temporal has to have: schedules and search attributes."""
