"""The paper's tables and figures, each a `Study` that one command runs.

To add a study, write a module in this package with a constant ``STUDY`` and add its line to ``registry.py``:

* settings are a frozen dataclass, one instance per preset: ``"quick"`` takes minutes on a CPU, ``"paper"`` is all;
* ``measure(settings, conditions)`` trains and returns tables of numbers;
* ``judge(tables, settings)`` returns `Findings`: comparisons with the paper's values beside ours, the paper's claims
  with the statistic that judged each, a figure, and printed numbers that do not come out. It sees the tables alone;
* whatever takes long is kept in ``conditions.file(name, key)``, another file for another ``key`` or other code,
  so that an interrupted study continues and two studies can share a computation;
* seeds are ``conditions.seeds(count)``, never the clock.

The runner writes ``measured.json`` and one CSV file per table into a folder named after the study, then what is judged
from them: ``result.json``, ``result.md`` and ``figure.png``. The page is assembled from the results in a folder.
``python -m reproduction NAME --measure`` leaves out the judgement, where there is nothing to draw with.
"""

from reproduction.study import Claim, Comparison, Conditions, Findings, Study, Unmatched

__all__ = ["Claim", "Comparison", "Conditions", "Findings", "Study", "Unmatched"]
