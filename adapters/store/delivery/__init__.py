"""The record of releases."""
