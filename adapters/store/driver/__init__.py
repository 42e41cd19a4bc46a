"""How SQLAlchemy drives SQLite."""
