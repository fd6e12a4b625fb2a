"""Measurements against a floor or a peer in the same run; nothing here is a test."""
