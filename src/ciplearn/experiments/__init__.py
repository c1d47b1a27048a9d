"""Measurements and reproductions that the command line offers."""
