"""What the page about the command line shows is what the commands take."""

import re
from pathlib import Path

import pytest
import typer

from ciplearn._core.plain_data import read_mapping
from ciplearn.causal import CausalGraph
from ciplearn.cli.app import app, run
from ciplearn.cli.commands import COMMANDS
from ciplearn.scm.scm_file import read_scm

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the tests")


def block(name, folder):
    text = next(part for part in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if name in part)
    path = folder / name
    path.write_text(text)
    return path


def test_causal_model_of_the_page_can_be_sampled(tmp_path):
    graph = CausalGraph.from_edges('S -> A, A -> L, "years at school" -> L, L -> Y, A -> Y')
    scm = read_scm(block("known.yaml", tmp_path), graph, run_code=False)
    assert len(scm.sample(20, random_state=0)) == 20


def test_options_of_the_page_exist(tmp_path):
    commands = typer.main.get_command(app).commands
    known = {parameter.name for parameter in commands["fit"].params}
    assert set(read_mapping(block("fit.yaml", tmp_path))) <= known
    flags = {flag for command in commands.values() for parameter in command.params for flag in parameter.opts}
    flags |= {
        flag for command in commands.values() for parameter in command.params for flag in parameter.secondary_opts
    }
    mentioned = set(re.findall(r"--[a-z][a-z-]+", PAGE.read_text())) - {"--help", "--install-completion"}
    assert mentioned - flags == set()


def test_every_command_is_in_the_table_and_takes_json():
    commands = typer.main.get_command(app).commands
    for name in COMMANDS:
        assert f"| `{name}` |" in PAGE.read_text()
        assert any("--json" in parameter.opts for parameter in commands[name].params), name


@pytest.mark.parametrize("command", ["fit", "audit"])
def test_help_fits_on_a_screen_and_all_of_it_is_there_when_asked_for(command, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "80")
    options = typer.main.get_command(app).commands[command].params
    every = {flag for option in options for flag in option.opts if flag.startswith("--")}
    shown = {}
    for asked in ("--help", "--help-all"):
        assert run([command, asked]) == 0
        shown[asked] = capfd.readouterr().out
        assert not re.search(r"<\w+>|[{}]", shown[asked])
    assert len(shown["--help"].splitlines()) <= 48
    # Roles come before goals, and each example stands on one line of 80 columns.
    assert shown["--help"].index("--protected") < shown["--help"].index("--max-effect")
    assert re.search(rf"^  ciplearn {command} .* (--out \S+) *$", shown["--help"], re.MULTILINE)
    assert {flag for flag in every if not re.search(rf"{flag}\b", shown["--help-all"])} == set()
    assert {"--separator", "--adjustment"} <= every - {
        flag for flag in every if re.search(rf"{flag}\b", shown["--help"])
    }
