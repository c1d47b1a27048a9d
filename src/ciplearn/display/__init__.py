"""Pictures."""

from ciplearn.display.frontier import FrontierDisplay

__all__ = ["FrontierDisplay"]
