"""The paper's tables and figures, each a `Study` that one command runs.

To add a study, write a module in this package with a constant ``STUDY`` and add its line to ``registry.py``:

* settings are a frozen dataclass, one instance a preset: ``"quick"`` takes minutes on a CPU, ``"paper"`` is all of it;
* ``run(settings, conditions)`` returns `Findings`: tables, comparisons with the paper's values beside ours, the paper's
  claims with the statistic that judged each, a figure, and what could not be matched, with the most likely reason;
* whatever takes long is kept in ``conditions.file(name, key)``, another file for another ``key`` or other code,
  so that an interrupted study continues and two studies can share a computation;
* seeds are ``conditions.seeds(count)``, never the clock.

The runner writes ``result.json``, ``result.md``, ``figure.png`` and a CSV file a table into a folder named after the
study, and assembles the page of all results in the folder.
"""

from ciplearn.experiments.reproduction.study import Claim, Comparison, Conditions, Findings, Study, Unmatched

__all__ = ["Claim", "Comparison", "Conditions", "Findings", "Study", "Unmatched"]
