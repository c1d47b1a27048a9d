"""Training with a penalty: the loop, the search for gamma, the frontier. Never sees a counterfactual."""

from ciplearn.learning.frontier import Frontier
from ciplearn.learning.loop import Validation, train
from ciplearn.learning.rows import DatasetRows, TrainingRows
from ciplearn.learning.settings import BinaryCrossEntropy, CrossEntropy, Fit, Objective, SquaredError, TrainingSettings
from ciplearn.learning.streamed_rows import Rows, StreamedRows

__all__ = ["BinaryCrossEntropy", "CrossEntropy", "DatasetRows", "Fit", "Frontier", "Objective", "Rows", "SquaredError"]
__all__ += ["StreamedRows", "TrainingRows", "TrainingSettings", "Validation", "train"]
