"""Notations for graphs: one module reads and writes one notation."""
