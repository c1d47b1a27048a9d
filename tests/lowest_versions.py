"""Print the lowest version of each package that pyproject.toml declares, as constraints for pip.

torch is left out: its oldest builds bring gigabytes of CUDA packages along.
"""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
declared = [*project["dependencies"], *extras["parquet"], *extras["yaml"]]
for package in declared:
    name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)", package).groups()
    if name != "torch":
        sys.stdout.write(f"{name}=={version}\n")
