"""Deliveries and releases for people: started, watched, taken back, looked at."""
