"""Reading source code: what files define, use and import, and where words occur."""
