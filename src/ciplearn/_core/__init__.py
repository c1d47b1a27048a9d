"""Errors, checks at the doorway, files that appear whole, rows in blocks, lists in words: what every room may use."""
