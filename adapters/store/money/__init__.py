"""Calls of models and what they cost: one transaction for a call's row and every account that it is counted on."""
