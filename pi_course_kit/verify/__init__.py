"""What `pi-course verify` proves: red means red, green means green, chapter by chapter."""
