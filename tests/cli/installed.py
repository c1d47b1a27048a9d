"""The installed command, as a shell would run it."""

import subprocess
import sys
from pathlib import Path

import pytest


def command():
    script = Path(sys.executable).with_name("ciplearn")
    if not script.exists():
        pytest.skip("the command ciplearn is not installed beside this Python")
    return str(script)


def ciplearn(*arguments, **options):
    settings = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run([command(), *map(str, arguments)], **settings)
