"""The command line."""

from ciplearn.cli.app import main

__all__ = ["main"]
