"""Which fitted algorithms are versions of FSRS that apps read, and how they read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from srs_eval.algorithms.fsrs.early import Fsrs4, Fsrs4Equations, Fsrs45, Fsrs45Equations
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs5Equations, Fsrs6, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7, Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs_rs import FsrsRs
from srs_eval.engine.equations import Equations

# What turns FSRS-5 into FSRS-6: no fading of the same-day update, and the fixed exponent.
_FSRS5_AS_FSRS6 = (0.0, 0.5)
_AS_FSRS45 = (
    "Anki takes 17 numbers for FSRS-4.5 and turns them into FSRS-6 itself, which moves "
    "difficulties, and with them intervals, of one card in ten by a third; algo=fsrs6 is exact"
)
_SAME_DAY_LEFT_OUT = (
    "the model does not see same-day reviews; in Anki they leave stability alone, but move "
    "difficulty"
)
_SAME_DAY_HARD = (
    "a same-day Hard may lower stability in FSRS-5; the app reads the numbers as FSRS-6, where "
    "it does not"
)


@dataclass(frozen=True, slots=True)
class FsrsVersion:
    """A version of FSRS, and its treatment by apps."""

    name: str  # What people call it
    equations: Equations  # The model as mathematics
    read_by_apps: bool = True  # Whether an app schedules with its parameters
    s_is_s90: bool = True  # Whether its stability is the interval at which it predicts 90 %
    # What is put behind the parameters to make the same model of FSRS-6; None where its difficulty
    # or its curve is another
    as_fsrs6: tuple[float, ...] | None = None
    differences: tuple[str, ...] = ()  # Where apps do otherwise than the model

    @property
    def numbers(self) -> int:
        """How many parameters it has."""
        return len(self.equations.parameters)


_FSRS6 = FsrsVersion("FSRS-6", Fsrs6Equations(), as_fsrs6=())
# By the very class: one derived from it may have other equations.
_VERSIONS = {
    Fsrs4: FsrsVersion(
        "FSRS v4",
        Fsrs4Equations(),
        differences=(
            "Anki's curve of forgetting is flatter than that of FSRS v4, which it no longer has: "
            "both say 90 % at the same time, and differ everywhere else",
            _AS_FSRS45,
            _SAME_DAY_LEFT_OUT,
        ),
    ),
    Fsrs45: FsrsVersion(
        "FSRS-4.5", Fsrs45Equations(), differences=(_AS_FSRS45, _SAME_DAY_LEFT_OUT)
    ),
    Fsrs5: FsrsVersion(
        "FSRS-5", Fsrs5Equations(), as_fsrs6=_FSRS5_AS_FSRS6, differences=(_SAME_DAY_HARD,)
    ),
    Fsrs6: _FSRS6,
    FsrsRs: _FSRS6,
    Fsrs7: FsrsVersion("FSRS-7", Fsrs7Equations(), read_by_apps=False, s_is_s90=False),
}
_BY_CLASS = {kind.__qualname__: known for kind, known in _VERSIONS.items()}


def version_of(options: Mapping[str, Any]) -> FsrsVersion | None:
    """Find the version of FSRS that an algorithm is, by its resolved configuration.

    >>> version_of({"_target_": "srs_eval.algorithms.fsrs.fsrs6.Fsrs5"}).name
    'FSRS-5'
    >>> version_of({"_target_": "srs_eval.algorithms.fsrs5.Fsrs5"}).name
    'FSRS-5'
    >>> version_of({"_target_": "srs_eval.algorithms.half_life.Hlr"})
    """
    module, _, name = str(options.get("_target_")).rpartition(".")
    # The folders below differ between releases.
    return _BY_CLASS.get(name) if module.startswith("srs_eval.algorithms.") else None


def outside_bounds(parameters: tuple[float, ...]) -> list[str]:
    """Return the names of the parameters of FSRS-6 outside its published bounds.

    >>> outside_bounds((*Fsrs6Equations.parameters.defaults[:20], 0.9))
    ['parameter 20 is 0.9, not in 0.1 to 0.8']
    """
    space = Fsrs6Equations.parameters
    return [
        f"parameter {number} is {value:g}, not in {low:g} to {high:g}"
        for number, (value, low, high) in enumerate(
            zip(parameters, space.lower, space.upper, strict=True)
        )
        if not low <= value <= high
    ]
