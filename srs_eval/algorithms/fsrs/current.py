"""FSRS-6 with the parameters that a collection has now, for each preset."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.combined import OTHERS, PerGroupModel
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.data.reviews import IntArray, Reviews

DEFAULTS = Fsrs6Equations.parameters.defaults


def as_fsrs6(parameters: tuple[float, ...]) -> tuple[float, ...]:
    """Return the 21 parameters of FSRS-6 that Anki makes of those of any version.

    Those of no version, which are not 17, 19 or 21, are the default ones. See
    ``check_and_fill_parameters`` in open-spaced-repetition/fsrs-rs.

    >>> as_fsrs6(()) == DEFAULTS
    True
    """
    w = list(parameters)
    if len(w) == 17:
        w[4:7] = w[4] + 2 * w[5], math.log(1 + 3 * w[5]) / 3, w[6] + 0.5
        w += [0.0, 0.0]
    if len(w) == 19:
        w += [0.0, 0.5]  # the decay of FSRS-4.5 and FSRS-5
    if len(w) != len(DEFAULTS):
        return DEFAULTS
    space = Fsrs6Equations.parameters
    return tuple(np.clip(w, space.lower, space.upper).tolist())


@dataclass(frozen=True, slots=True)
class CurrentParameters(Algorithm):
    """FSRS-6 with given parameters of each preset; nothing is fitted.

    Cards of other presets, and deleted ones, whose preset is not known, are predicted with the
    published default parameters.
    """

    # Parameters of FSRS-6 by the number of the preset
    presets: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    same_day = True

    @property
    def from_data(self) -> Mapping[str, object]:
        """The parameters, which are in the collection and not among the settings of a run."""
        return {"presets": {str(number): w for number, w in self.presets.items()}}

    @property
    def in_sample(self) -> bool:
        """Whether they may have been fitted to the rows that score them: all but default ones."""
        return not all(np.allclose(w, DEFAULTS, rtol=1e-5) for w in self.presets.values())

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> PerGroupModel:
        """Return the model with these parameters."""
        equations = Fsrs6Equations()
        sets = {OTHERS: DEFAULTS, **self.presets}
        models = {number: RecurrentModel(equations, w) for number, w in sets.items()}
        return PerGroupModel("preset", models)
