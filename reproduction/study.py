"""What a reproduction is made of: a study, the conditions it runs under, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciplearn._core.files import write_file
from reproduction.fingerprints import of_computation

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and whether it holds here.

    Attributes
    ----------
    claim : str
        The sentence, short.
    statistic : str
        What was computed, what came out and where the line was drawn before looking.
    holds : bool
    method : str
        Whose settings were judged, where several are run side by side.
    value : float or None
        The statistic as a number.
    """

    claim: str
    statistic: str
    holds: bool
    method: str = ""
    value: float | None = None


@dataclass(frozen=True)
class Unmatched:
    """Numbers of the paper that do not come out, and the reason where one is known."""

    what: str
    paper: str
    ours: str
    reason: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """A table for people, with the paper's value beside ours; its columns are the headings."""

    caption: str
    table: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Findings:
    """What a study says of its numbers.

    Attributes
    ----------
    comparisons : tuple of Comparison
    claims : tuple of Claim
    figure : Figure, optional
    caption : str
        What the figure shows.
    unmatched : tuple of Unmatched
    notes : tuple of str
        Sentences that a reader needs to judge the rest.
    """

    comparisons: tuple[Comparison, ...]
    claims: tuple[Claim, ...]
    figure: Figure | None = None
    caption: str = ""
    unmatched: tuple[Unmatched, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conditions:
    """Where and how a study runs.

    Attributes
    ----------
    seed : int
        The first seed; everything random follows from it.
    device : str
        ``"cpu"`` or ``"cuda"``.
    cache : Path
        Folder of unfinished and shared computations.
    n_jobs : int
        Processes on a CPU.
    verbose : bool
        Whether a person watches.
    options : mapping
        What was passed on the command line for one study alone, such as the path of a data file.
    reused : set of str
        Names of the files that were there when the study first asked for them: its time is not the whole time then.
    """

    seed: int
    device: str
    cache: Path
    n_jobs: int = 1
    verbose: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    reused: set[str] = field(default_factory=set)

    def kept(self, name: str, key: object, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Read a table that an earlier run has made, or make it; see `file`."""
        import pandas as pd

        path = self.file(name, key)
        if not path.exists():
            write_file(path, make().to_csv(index=False))
        return pd.read_csv(path)

    def seeds(self, count: int) -> range:
        """Return ``count`` seeds, from the first on."""
        return range(self.seed, self.seed + count)

    def file(self, name: str, key: object) -> Path:
        """Return the path of a cached computation: another for another key, device, seed or code.

        Parameters
        ----------
        name : str
            For people who look into the folder.
        key : object
            Whose ``repr`` says everything the computation depends on; dataclasses of plain values do.
        """
        self.cache.mkdir(parents=True, exist_ok=True)
        path = self.cache / f"{name}-{of_computation(key, self.device, self.seed)}.csv"
        if path.exists():
            self.reused.add(path.name)
        return path


@dataclass(frozen=True)
class Study:
    """A table or figure of the paper that the program makes anew.

    Attributes
    ----------
    name : str
        On the command line.
    title : str
    presets : mapping from preset to settings
        Frozen dataclasses of plain values.
    measure : callable
        ``measure(settings, conditions) -> tables``, by name: the numbers behind everything, one CSV file each. It takes
        long.
    judge : callable
        ``judge(tables, settings) -> Findings``, from the tables as they are read back. It takes no time, so that kept
        numbers can be judged anew.
    paper : mapping
        The paper's values, ready for JSON.
    remarks : tuple of str
        Sentences that help to read any run of it; what belongs to one run is a note of its `Findings`.
    """

    name: str
    title: str
    presets: Mapping[str, Any]
    measure: Callable[[Any, Conditions], Mapping[str, pd.DataFrame]]
    judge: Callable[[Mapping[str, pd.DataFrame], Any], Findings]
    paper: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
