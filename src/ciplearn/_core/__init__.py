"""Errors, checks at the doorway and seeds: what every room may use."""
