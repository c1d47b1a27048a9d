"""``--config``: every option of a command from a file; what is typed beats what the file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from ciplearn._core.errors import InputError, MissingDependencyError
from ciplearn.cli.names import join_names


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the entries of a file the defaults of the command's options; the callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    options = _spelled(context)
    defaults = {}
    for key, value in read_mapping(path).items():
        name = options.get(key.replace("-", "_"))
        if name is None:
            from ciplearn.causal.names import nearest

            hint = nearest(key, [spelled.replace("_", "-") for spelled in options], "options")
            raise InputError(f"{path} sets {key!r}, which is no option of ciplearn {context.info_name}; {hint}")
        defaults[name] = _as_typed(value, key, path)
    context.default_map = defaults
    return path


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML, TOML or JSON file that maps names to values."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}; pass a YAML, TOML or JSON file.") from error
    content = _parsed(path, text)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{path} must map names to values, got {type(content).__name__}; write lines such as 'a: 1'.")
    return content


def _parsed(path: Path, text: str) -> Any:
    kind = path.suffix.lower()
    try:
        if kind == ".json":
            return json.loads(text)
        if kind == ".toml":
            import tomllib

            return tomllib.loads(text)
        if kind in (".yaml", ".yml"):
            return _yaml(text)
    except ValueError as error:
        raise InputError(f"{path} is not valid {kind[1:].upper()}: {error}; correct that place.") from error
    raise InputError(
        f"{path} ends in {kind or 'nothing'!r}; name it .yaml, .toml or .json, so that its notation is known."
    )


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingDependencyError(
            "YAML files need pyyaml, which is not installed; pip install 'ciplearn[yaml]', or write TOML or JSON."
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _spelled(context: typer.Context) -> dict[str, str]:
    """How each option may be written in a file -> the name of its parameter."""
    spelled = {}
    for parameter in context.command.params:
        if parameter.name in (None, "config", "help"):
            continue
        for name in (parameter.name, *parameter.opts):
            spelled[str(name).lstrip("-").replace("-", "_")] = str(parameter.name)
    return spelled


def _as_typed(value: Any, key: str, path: Path) -> Any:
    """The value as the command line would have it, so that both are checked by the same rules."""
    if isinstance(value, list):
        return join_names(value)
    if isinstance(value, dict):
        raise InputError(f"{path} sets {key!r} to a mapping, which no option takes; write a value or a list of names.")
    return value if isinstance(value, bool) or value is None else str(value)
