"""What every ledger, and every keeper of places, must do."""
