"""The commands, and what happens when a call goes wrong.

To add a command, write a module with one function in this package, import it here and add a line to `_COMMANDS`. Keep
the module's top light: torch, pandas and the like are imported inside the function, so that ``--help`` stays quick.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable

import typer

from ciplearn._core.errors import CiplearnError
from ciplearn.cli.audit import audit
from ciplearn.cli.bench import bench
from ciplearn.cli.check import check
from ciplearn.cli.demo import demo
from ciplearn.cli.fit import fit
from ciplearn.cli.output import complain, say
from ciplearn.cli.predict import predict
from ciplearn.cli.reproduce import reproduce

# Name on the command line -> function. A function returns its exit code, or None for 0.
_COMMANDS: dict[str, Callable[..., int | None]] = {
    "demo": demo,
    "check": check,
    "fit": fit,
    "predict": predict,
    "audit": audit,
    "bench": bench,
    "reproduce": reproduce,
}

# Small matrices on several threads of a busy machine are many times slower than on one. Set these to overrule.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_MISTAKE = 2
_INTERRUPTED = 130
_TERMINATED = 143

app = typer.Typer(
    help="Counterfactually invariant prediction: predictors that would have said the same had A been different.",
    pretty_exceptions_enable=False,
)
for _name, _function in _COMMANDS.items():
    app.command(_name)(_function)


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Show the version.")
) -> None:
    """Show the version or the help where no command is named."""
    if version:
        from ciplearn import __version__

        say(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())


# typer brings its own click in some versions and imports it in others; either way BadParameter is a UsageError is a
# ClickException, the base of every mistake in a call.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]


def main() -> None:
    """Run the command line; mistakes end in one line on standard error and exit code 2."""
    # A polite kill cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    warnings.showwarning = _note
    for name in _THREADS:
        os.environ.setdefault(name, "1")
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    try:
        result = app(arguments, standalone_mode=False)
        sys.stdout.flush()
    except CiplearnError as problem:
        complain(f"ciplearn: {problem}")
        return _MISTAKE
    except _ClickException as problem:
        message = getattr(problem, "format_message", problem.__str__)()
        complain(f"ciplearn: {message.rstrip('.')}; see ciplearn --help.")
        return _MISTAKE
    except BrokenPipeError:
        # The reader, such as head, has seen enough. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as problem:
        complain(f"ciplearn: {problem.filename or 'a file'}: {problem.strerror or problem}; check the place.")
        return _MISTAKE
    except (typer.Abort, KeyboardInterrupt):
        result = _INTERRUPTED
    if result == _INTERRUPTED:
        complain("ciplearn: interrupted.")
    return result if isinstance(result, int) else 0


def _note(message: Warning | str, *_: object, **__: object) -> None:
    complain(f"ciplearn: note: {message}")
