"""Trainings of the image experiment: one data set, three penalties, all gammas of a seed judged together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch

from ciplearn._core.files import make_folder, whole_file
from ciplearn.estimators import CIPRegressor
from ciplearn.estimators.preparation import COUNTERFACTUAL
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.kernels import Categorical, Gaussian, Product, Sum
from ciplearn.penalties import HSCIC, Penalty, ResidualHSCIC
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.kinds import Array
from reproduction.image_network import ImageNetwork
from reproduction.methods import PAPER
from reproduction.sprites import FACTORS, SIZES, Archive, PicturePredictor, image_latents, matched_latents, render

BY_VARIABLE = "by variable"
METHODS = (PAPER, BY_VARIABLE, COUNTERFACTUAL)

PROTECTED, OUTCOME = "x_pos", "Y"
_GIVEN = ["shape", "y_pos"]
_INPUTS = list(FACTORS)

_TRAIN_SHARE = 0.8


@dataclass(frozen=True)
class ImageSettings:
    """Of the image experiment.

    Attributes
    ----------
    rows : int
        Pictures, of which 80 % are trained on.
    seeds : int
        Networks at each gamma; the pictures are the same for all.
    paper_gammas, by_variable_gammas : tuple of float
        Plain weights of two penalties that differ in scale.
    counterfactual_gammas : tuple of float
        Relative, as they are by default.
    worlds : int
        Pictures that are imagined per picture for the counterfactual route.
    epochs, batch_size : int
    learning_rate : float
    dropout : float
        The paper has dropout layers and does not print their rate.
    points, interventions : int
        d and k.
    """

    rows: int
    seeds: int
    paper_gammas: tuple[float, ...]
    by_variable_gammas: tuple[float, ...]
    counterfactual_gammas: tuple[float, ...]
    worlds: int
    epochs: int
    batch_size: int
    points: int
    interventions: int
    learning_rate: float = 3e-3
    dropout: float = 0.0

    def trainings(self) -> list[tuple[str, float]]:
        """Every method with every one of its gammas; without a penalty the methods are one."""
        each = (self.paper_gammas, self.by_variable_gammas, self.counterfactual_gammas)
        gammas = dict(zip(METHODS, each, strict=True))
        return [(PAPER, 0.0), *((method, gamma) for method in METHODS for gamma in gammas[method])]


@dataclass(frozen=True, eq=False)
class ImageCase:
    """Matched rows and their pictures.

    Attributes
    ----------
    scm : StructuralCausalModel
    train, test : DataFrame
    train_pictures, test_pictures : array of bytes, shape (n, 64, 64)
    train_units, test_units : Units
        The rows with their noise, so that each has one counterfactual per position.
    images : callable (latents) -> pictures
    """

    scm: StructuralCausalModel
    train: pd.DataFrame
    test: pd.DataFrame
    train_pictures: Array
    test_pictures: Array
    train_units: Units
    test_units: Units
    images: Callable[[Array], Array] = render

    @classmethod
    def draw(cls, rows: int, seed: int, data: str | None = None) -> ImageCase:
        """Sample the model and match its rows with pictures: of the original file ``data``, or rendered."""
        scm = image_latents()
        units, cut = scm.sample_units(rows, random_state=seed), int(_TRAIN_SHARE * rows)
        table, images = scm.frame(units), render if data is None else Archive(data).images
        seen = images(matched_latents(table))
        trained, held_out = units.take(np.arange(cut)), units.take(np.arange(cut, rows))
        return cls(scm, table.iloc[:cut], table.iloc[cut:], seen[:cut], seen[cut:], trained, held_out, images)

    @property
    def outcome_range(self) -> float:
        """Width of the outcome on training rows: errors and variances are reported on the scale [0, 1]."""
        return float(np.ptp(self.train[OUTCOME]))

    def worlds(self, count: int, seed: int) -> list[tuple[pd.DataFrame, tuple[Array]]]:
        """Training rows and pictures as they would have been, had x_pos been that of another row, drawn anew per world.

        The renderer is known, and so is the model of the latents; nothing is estimated.
        """
        generator, seen = np.random.default_rng(seed), self.train[PROTECTED].to_numpy()
        found = []
        for _ in range(count):
            rows = self.scm.counterfactual(self.train_units, {PROTECTED: generator.choice(seen, len(seen))})
            found.append((rows[_INPUTS], (self.images(matched_latents(rows)),)))
        return found

    def cell_means(self) -> Array:
        """Mean outcome of the training rows with a test row's shape and y_pos: invariant, for it never sees x_pos."""
        means = self.train.groupby(_GIVEN)[OUTCOME].mean()
        cells = pd.MultiIndex.from_frame(self.test[_GIVEN])
        return means.reindex(cells).fillna(self.train[OUTCOME].mean()).to_numpy()

    def error(self, prediction: Array) -> float:
        """Mean squared error on test rows."""
        return float(np.mean((prediction - self.test[OUTCOME].to_numpy()) ** 2)) / self.outcome_range**2

    def shown_unit(self) -> Units:
        """One test row for people to look at: a heart in the middle, whose outcome x_pos moves most."""
        distance = (
            np.abs(self.test["y_pos"] - 15) + 100 * (self.test["shape"] < 3) + 3 - self.test["scale"].clip(upper=3)
        )
        return self.test_units.take([int(np.argmin(distance))])


def penalty_of(method: str) -> Penalty | None:
    """Return the paper's HSCIC, ResidualHSCIC with a kernel for each variable, or None where imagined rows count.

    One kernel on all four variables of the right-hand side hardly tells the outcome from its mean given shape and
    y_pos: x_pos keeps within a few steps of their sum, and what moves a common distance is orientation. So each has a
    kernel of its own, on the scale [0, 1] of its column; color never changes. Shapes are equal or not.
    """
    if method == COUNTERFACTUAL:
        return None
    if method == PAPER:
        return HSCIC.paper()
    orientation, scale, x_pos = Gaussian(columns=(1,)), Gaussian(0.3, columns=(2,)), Gaussian(0.05, columns=(3,))
    return ResidualHSCIC(
        kernel=Gaussian(0.1),
        right_kernel=Sum(x_pos, scale, orientation),  # the columns are color, orientation, scale, x_pos
        given_kernel=Product(Gaussian(columns=(1,)), Categorical(columns=(0,))),  # shape, y_pos
    )


def one_seed(
    settings: ImageSettings, data_seed: int, seed: int, device: str, work: Path, data: str | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train all networks of a seed; return their measures, and what they say about one sprite moved sideways.

    Networks that are done, and the state of the one in training, lie in the folder ``work``: a seed that was killed
    goes on from there.
    """
    if device == "cpu":
        # Two threads on two busy cores are many times slower than one.
        torch.set_num_threads(1)
    case = ImageCase.draw(settings.rows, data_seed, data)
    trainings = settings.trainings()
    make_folder(work)
    models = [_trained(case, method, gamma, settings, seed, device, work) for method, gamma in trainings]
    spread = variance_of_counterfactuals(
        PicturePredictor(_Together(models)),
        case.scm,
        case.test_units,
        [PROTECTED],
        n_points=settings.points,
        n_interventions=settings.interventions,
        random_state=data_seed,
    )
    vcf = np.array(list(spread.per_output.values())) / case.outcome_range**2
    said = _Together(models).predict(case.test[_INPUTS], (case.test_pictures,))
    named = pd.DataFrame(trainings, columns=["method", "gamma"]).assign(seed=seed)
    measures = named.assign(mse=[case.error(column) for column in said.T], vcf=vcf)
    return measures, _moved_sideways(case, models, named)


def _trained(
    case: ImageCase, method: str, gamma: float, settings: ImageSettings, seed: int, device: str, work: Path
) -> CIPRegressor:
    done = work / f"{method.replace(' ', '-')}-{gamma:g}.joblib"
    if done.exists():
        return joblib.load(done)
    model = CIPRegressor(
        graph=case.scm.graph,
        outcome=OUTCOME,
        protected=[PROTECTED],
        adjustment=_GIVEN,
        gamma=gamma,
        penalty=penalty_of(method),
        module=partial(ImageNetwork, len(_INPUTS), settings.dropout),
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        schedule="constant",
        checkpoint=done.with_suffix(".checkpoint"),
        device=device,
        random_state=seed,
    )
    imagined = case.worlds(settings.worlds, seed) if method == COUNTERFACTUAL else None
    model.fit(case.train[_INPUTS], case.train[OUTCOME], tensors=(case.train_pictures,), imagined=imagined)
    with whole_file(done) as stream:
        joblib.dump(model, stream)
    return model


@dataclass(frozen=True)
class _Together:
    """Several models as one with several outputs: counterfactual pictures are rendered once for all."""

    models: Sequence[CIPRegressor]

    def predict(self, table: pd.DataFrame, tensors: tuple[Any, ...]) -> Array:  # (n, models)
        return np.stack([model.predict(table, tensors=tensors) for model in self.models], axis=1)


def _moved_sideways(case: ImageCase, models: Sequence[CIPRegressor], named: pd.DataFrame) -> pd.DataFrame:
    places = np.arange(float(SIZES[FACTORS.index(PROTECTED)]))
    unit = case.shown_unit()
    rows = case.scm.counterfactual(unit.take(np.zeros(len(places), dtype=int)), {PROTECTED: places})
    said = PicturePredictor(_Together(models)).predict(rows)  # (places, models)
    shown = rows.assign(factual=case.scm.frame(unit)[PROTECTED].iloc[0])
    each = [shown.assign(**named.iloc[number], prediction=column) for number, column in enumerate(said.T)]
    return pd.concat(each, ignore_index=True)
