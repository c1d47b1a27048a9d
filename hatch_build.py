"""A wheel and a source distribution carry the built page of the workbench; the repository does not."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):
    """Builds the page before files are packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, but for editable installs, which read the folder as it is."""
        script = Path(self.root) / "workbench" / "build.py"
        # A source distribution brings the page and no sources of it.
        if version == "editable" or not script.exists() or os.environ.get("CIPLEARN_WITHOUT_PAGE"):
            return
        spec = importlib.util.spec_from_file_location("build_page", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            module.build()
        except (OSError, ValueError, module.subprocess.SubprocessError) as error:
            raise SystemExit(
                f"The page of the workbench could not be built ({error}); install npm, or allow the registry, or "
                "set CIPLEARN_WITHOUT_PAGE=1 to do without the workbench."
            ) from error
