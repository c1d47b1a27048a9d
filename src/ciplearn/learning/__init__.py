"""Training with a penalty: the loop, the search for gamma, the frontier. Never sees a counterfactual."""

from ciplearn.learning.frontier import Frontier
from ciplearn.learning.loop import Fit, Validation, train
from ciplearn.learning.objectives import BinaryCrossEntropy, CrossEntropy, Objective, SquaredError
from ciplearn.learning.rows import DatasetRows, TrainingRows
from ciplearn.learning.settings import TrainingSettings
from ciplearn.learning.streamed_rows import Rows, StreamedRows

__all__ = [
    "BinaryCrossEntropy",
    "CrossEntropy",
    "DatasetRows",
    "Fit",
    "Frontier",
    "Objective",
    "Rows",
    "SquaredError",
    "StreamedRows",
    "TrainingRows",
    "TrainingSettings",
    "Validation",
    "train",
]
