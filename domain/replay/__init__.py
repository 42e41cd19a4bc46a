"""A recorded run and another one of the same thing."""
