"""Terminals and pipes as they come: closed, with another code page, with names that would steer them."""

import ast
import contextlib
import fcntl
import os
import pty
import re
import resource
import shlex
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import ciplearn as library
from ciplearn.cli import app as command_line
from ciplearn.cli.app import app, run
from ciplearn.cli.output import complain, note, progress, say, say_command, say_json, say_table, visible
from tests import warm
from tests.cli.installed import command
from tests.cli.people import GRAPH, people

CHECK = ["check", "A -> Y", "--outcome", "Y", "--protected", "A"]
TINY = ["--epochs=1", "--gamma=1", "--no-compare"]


def shell(line, **settings):
    return subprocess.run(["bash", "-c", line], capture_output=True, check=False, **settings)


def quoted(*arguments, command=warm.command):
    return " ".join(shlex.quote(part) for part in (command(), *arguments))


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_streams_that_are_closed_do_no_harm(closed):
    done = shell(f"{quoted(*CHECK, command=command)} {closed}")
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert shell(f"{quoted('check', 'A ->', command=command)} {closed}").returncode == 2


def test_full_standard_output_is_one_line_and_code_2():
    done = shell(f"{quoted(*CHECK)} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == b"ciplearn: standard output: No space left on device; check the place.\n"


def test_an_error_of_the_system_without_a_text_has_its_name(monkeypatch, capsys):
    def fails(*_, **__):
        raise ConnectionError

    monkeypatch.setattr(command_line, "app", fails)
    monkeypatch.setattr(command_line, "_forget_output", lambda: None)
    assert run(CHECK) == 2
    assert capsys.readouterr().err == "ciplearn: standard output: ConnectionError; check the place.\n"


@pytest.mark.parametrize("code_page", ["ascii", "cp1252", "cp437"])
def test_code_page_that_lacks_our_signs(code_page):
    environment = {**os.environ, "PYTHONIOENCODING": code_page, "PYTHONUTF8": "0"}
    done = shell(quoted(*CHECK, command=command), env=environment)
    assert done.returncode == 0, done.stderr
    assert "Y^ _||_ {A}" in done.stdout.decode(code_page)
    as_json = shell(quoted(*CHECK, "--json", command=command), env=environment)
    assert as_json.returncode == 0, as_json.stderr
    assert "\\u0176" in as_json.stdout.decode(code_page)


def test_control_characters_are_spelled_out(capsys):
    evil = "red \x1b[31m bell \x07 title \x1b]0;owned\x07 c1 \x9b31m turned \u202etxt"
    say(evil)
    complain(evil)
    say_json({evil: evil})
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "\\u001b[31m" in printed.out
    assert visible("Ŷ ⊥ {A} | {S}\tand\n") == "Ŷ ⊥ {A} | {S}\tand\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_names_and_cells_of_a_table_cannot_steer_a_terminal(terminal, tmp_path, monkeypatch, capsys):
    table = people(60).assign(sex=lambda t: t["sex"] + "\x1b[2J").rename(columns={"id": "id\x1b]0;owned\x07"})
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr("ciplearn.cli.output.is_terminal", lambda: terminal)
    call = ["fit", str(tmp_path / "t.csv"), "--graph", GRAPH, "--out", str(tmp_path / "m")]
    assert run([*call, "--dry-run"]) == 0
    assert run([*call, "--protected", "sex\x1b[2J"]) == 2
    printed = capsys.readouterr()
    assert "\x1b" not in printed.err
    assert not re.search("\x1b\\[2J|\x1b]|\x07", printed.out)
    assert "Not in the graph, so not used: id\\u001b]0;owned\\u0007." in printed.out


def test_names_of_files_that_are_no_text(tmp_path):
    folder = os.fsencode(tmp_path)
    table, model = os.path.join(folder, b"caf\xe9 t.csv"), os.path.join(folder, b"mod\xe8le")
    with open(table, "w") as stream:
        people(120).to_csv(stream, index=False)
    call = [warm.command(), "fit", table, "--graph", GRAPH, *TINY, "--out", model]
    fitted = subprocess.run(call, capture_output=True, check=False)
    assert fitted.returncode == 0, fitted.stderr
    assert os.path.exists(os.path.join(model, b"training.json"))
    effort = ["--points=10", "--interventions=4", "--draws=2", "--scm-rows=60", "--doubt=0", "--no-gate"]
    page = os.path.join(folder, b"r\xe9port.html")
    audited = subprocess.run(
        [warm.command(), "audit", model, table, "--out", page, *effort], capture_output=True, check=False
    )
    assert audited.returncode == 0, audited.stderr
    assert os.path.exists(page)


def test_next_command_can_be_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(60).to_csv("my table; rm -rf x.csv", index=False)
    assert run(["fit", "my table; rm -rf x.csv", "--graph", GRAPH, *TINY, "--out", "a 'model'"]) == 0
    line = capsys.readouterr().out.strip().splitlines()[-1].split("Next: ")[1]
    assert shlex.split(line)[:4] == ["ciplearn", "audit", "a 'model'", "my table; rm -rf x.csv"]


def test_reader_that_leaves_is_no_error(tmp_path, model):
    pd.concat([people()] * 50).to_csv(tmp_path / "t.csv", index=False)
    asked = quoted("predict", str(model), str(tmp_path / "t.csv"))
    line = f"{asked} 2>&1 | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = shell(line)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)


@pytest.mark.parametrize("name", ["fit", "predict", "audit"])
def test_disk_that_is_full_is_named_as_the_user_has(name, place, model, tmp_path, monkeypatch, capsys):
    call = {
        "fit": ["fit", str(place / "people.csv"), "--graph", GRAPH, *TINY, "--out=m"],
        "predict": ["predict", str(model), str(place / "people.csv"), "--out=p.csv"],
        "audit": ["audit", str(model), str(place / "people.csv"), "--preset=quick", "--points=10", "--out=r.html"],
    }[name]
    monkeypatch.chdir(tmp_path)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        code = run(call)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    complaint = capsys.readouterr().err.splitlines()[-1]
    out = call[-1].removeprefix("--out=")
    assert (code, complaint) == (2, f"ciplearn: {out} cannot be written: File too large; pass another place.")
    assert list(tmp_path.iterdir()) == []


def test_progress_off_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr("ciplearn.cli.output.time.monotonic", lambda: now)
    with progress("choosing gamma", "training", total=40) as bar:
        for _ in range(40):
            now += 1
            bar.update()
            bar.set_postfix(gamma="1")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2, "after fifteen seconds, and after thirty"
    assert all(line.startswith("ciplearn: choosing gamma") for line in lines)


def said_in(tree):
    """Text of what is raised, noted or said."""
    speaking = {"note", "complain", "say", "warn", "InputError", "GraphError"}
    for node in ast.walk(tree):
        called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Raise) or called in speaking:
            yield from (part.value for part in ast.walk(node) if isinstance(getattr(part, "value", None), str))


class Screen:
    """A terminal of so many columns, on which this process writes; `text` is all that was written."""

    def __init__(self, columns, monkeypatch):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.streams = [open(os.dup(slave), "w", encoding="utf-8") for _ in range(2)]  # noqa: SIM115
        os.close(slave)
        self.master, self.written = master, bytearray()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        monkeypatch.delenv("COLUMNS", raising=False)
        for name, stream in zip(("stdout", "stderr"), self.streams, strict=True):
            monkeypatch.setattr(sys, name, stream)

    def read(self):
        with contextlib.suppress(OSError):
            while block := os.read(self.master, 1 << 16):
                self.written += block

    def text(self):
        for stream in self.streams:
            stream.close()
        self.reader.join()
        os.close(self.master)
        return re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", self.written.decode()).replace("\r\n", "\n")


WORDS = {
    "fit": ["fit", "people.csv", "--graph=graph.txt", *TINY, "--out=m", "--overwrite"],
    "audit": ["audit", "model", "people.csv", "--preset=quick", "--points=20", "--no-gate", "--out=r.html"],
    "check": ["check", "graph.txt"],
    "a mistake": ["fit", "people.csv", "--graph=graph.txt", "--protected=age", "--out=m2"],
    "help": ["fit", "--help"],
}


IN_PLENTY_OF_ROOM = {}


def words_of(name, monkeypatch, capfd):
    """The words of a command that is as wide as it wants to be; it is asked once."""
    if name not in IN_PLENTY_OF_ROOM:
        monkeypatch.setenv("COLUMNS", "1000")
        run(WORDS[name])
        IN_PLENTY_OF_ROOM[name] = set("".join(capfd.readouterr()).split())
    return IN_PLENTY_OF_ROOM[name]


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("columns", [40, pytest.param(80, marks=pytest.mark.slow), 140])
def test_no_word_is_cut_at_the_edge_of_a_terminal(name, columns, place, model, monkeypatch, capfd):
    assert model.parent == place
    monkeypatch.chdir(place)
    words = words_of(name, monkeypatch, capfd)
    with monkeypatch.context() as patched:
        screen = Screen(columns, patched)
        if name == "help":
            # typer asks the streams that Python was started with.
            patched.setenv("COLUMNS", str(columns))
        run(WORDS[name])
        lines = screen.text().split("\n")
    # What a bar has written over is gone.
    lines = [line.rsplit("\r", 1)[-1] for line in lines]
    sentences = [line for line in lines if not re.search(r"\d/(\d+|\?) \[", line)]
    assert len(sentences) > 2 or name == "a mistake"
    assert max(map(len, sentences)) <= columns
    # On a narrow terminal a row of a table is a paragraph, with its signs.
    shown = {word.rstrip(":;") for line in sentences for word in line.split()}
    assert shown - {word.rstrip(":;") for word in words} - {"\\"} == set()


def test_number_and_its_sign_are_on_one_line_and_so_are_a_column_and_its_value(monkeypatch):
    screen = Screen(20, monkeypatch)
    say("Explains at least 1 % of it.")
    say("From sex = f to sex = m.")
    told = ["Explains at least", "1 % of it.", "From sex = f to", "sex = m.", ""]
    assert screen.text().split("\n") == told


def test_table_of_tests_keeps_its_columns_on_a_narrow_terminal(tmp_path, monkeypatch):
    names = ["income_of_the_house", "years_of_training", "hours_of_work"]
    draws = np.random.default_rng(0).normal(size=(100, 3))
    pd.DataFrame(draws, columns=names).to_csv(tmp_path / "t.csv", index=False)
    screen = Screen(60, monkeypatch)
    graph = "income_of_the_house -> years_of_training, income_of_the_house -> hours_of_work"
    run(["check", graph, "--data", str(tmp_path / "t.csv")])
    lines = screen.text().split("\n")
    header = next(line.split() for line in lines if line.lstrip().startswith("statement"))
    assert header == ["statement", "p", "adjusted", "detectable"]


def test_table_without_room_for_its_words_is_a_paragraph_per_row(monkeypatch):
    rows = [("candidate", "rests on"), ("> unconstrained", "counterfactuals"), ("  linear", "nothing at all")]
    shown = {}
    for columns in (28, 32, 36):
        with monkeypatch.context() as patched:
            screen = Screen(columns, patched)
            say_table(rows)
            shown[columns] = [line.rstrip() for line in screen.text().split("\n")]
    assert shown[28][:2] == ["  > unconstrained: rests on", "  counterfactuals"]
    assert shown[36][1:3] == [" > unconstrained  counterfactuals", "   linear         nothing at all"]
    assert shown[36] == shown[32 + 4]


def test_command_to_paste_is_one_to_the_shell_however_narrow_the_terminal(monkeypatch):
    words = [
        "ciplearn",
        "audit",
        shlex.quote("a 'model'"),
        shlex.quote("my table; rm -rf x.csv"),
        "--out",
        "report.html",
    ]
    with monkeypatch.context() as patched:
        screen = Screen(40, patched)
        say_command("Next:", words)
        text = screen.text()
    assert max(map(len, text.split("\n"))) <= 40
    taken = shell(text.replace("Next:", "printf '%s\\n'")).stdout.decode().splitlines()
    assert taken == ["ciplearn", "audit", "a 'model'", "my table; rm -rf x.csv", "--out", "report.html"]


def test_note_during_a_bar_starts_a_line_of_its_own(monkeypatch):
    with monkeypatch.context() as patched:
        screen = Screen(60, patched)
        with progress("training", "step", 3) as bar:
            bar.update()
            note("nobody can read a sentence that begins in the middle of a bar, and is cut at the edge")
        text = screen.text()
    assert "\nciplearn: note:" in text or "\rciplearn: note:" in text


def test_bar_within_a_bar_leaves_nothing_behind(monkeypatch):
    with monkeypatch.context() as patched:
        screen = Screen(60, patched)
        with progress("how wrong it may be", "step", 2) as bar:
            bar.update()
            with progress("independencies", "test", 2) as inner:
                inner.update(2)
            bar.update()
        screen.text()
    rows, at = [""] * 9, 0
    for part in re.split("(\n|\r|\x1b\\[A)", screen.written.decode().replace("\r\n", "\n")):
        at += {"\n": 1, "\x1b[A": -1}.get(part, 0)
        rows[at] = part + rows[at][len(part) :] if part.isprintable() else rows[at]
    left = [row.strip() for row in rows if row.strip()]
    assert len(left) == 1
    assert left[0].startswith("how wrong it may be: 100%")


def test_messages_name_options_that_exist_only():
    commands = typer.main.get_command(app).commands.values()
    options = [parameter for command in commands for parameter in command.params]
    known = {flag for option in options for flag in (*option.opts, *option.secondary_opts)} | {"--help"}
    named = {
        flag: path.name
        for path in Path(library.__file__).parent.rglob("*.py")
        for text in said_in(ast.parse(path.read_text(encoding="utf-8")))
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text)
    }
    assert {flag: name for flag, name in named.items() if flag not in known} == {}
    assert {"--overwrite", "--on-violation", "--na"} <= set(named), "the messages were read"
