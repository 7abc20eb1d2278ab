"""Lists of parameters: those to paste, those of now, and what is odd about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.collection.study import Study
from srs_eval.comparison.words import counted

_DECIMALS = 4
_RATINGS = ("Again", "Hard", "Good", "Easy")
_HOUR = 1 / 24


def fitted_lists(study: Study) -> dict[int | None, tuple[str, str]]:
    """Return title and numbers of each list of parameters, as Anki takes them.

    Keys are presets, and None for the list of all others, the last.
    """
    text = study.final.export("anki").text
    parts = [part for part in study.final.by_user[study.log.user].fit.parts if part.standalone]
    if len(parts) < 2:
        title = "all presets" if len(study.presets) > 1 else "FSRS parameters"
        return {None: (title, text.splitlines()[-1])}
    lists: dict[int | None, tuple[str, str]] = {}
    for part, block in zip(parts, text.split("\n\n"), strict=True):
        preset = part.name.removeprefix("preset ")
        key = int(preset) if preset.isdigit() else None
        title = (part.title or part.name) if key is not None else "every other preset"
        lists[key] = (f"{title}, from {counted(part.n_train, 'review')}", block.splitlines()[-1])
    return dict(sorted(lists.items(), key=lambda each: each[0] is None))


def at_limits(parameters: Sequence[float]) -> int:
    """Count the parameters of FSRS-6 that are at a limit, as far as the default ones are not."""
    space = Fsrs6Equations.parameters
    ours, usual = (np.round(each, _DECIMALS) for each in (parameters, space.defaults))
    limits = [np.round(each, _DECIMALS) for each in (space.lower, space.upper)]
    return int(sum(((ours == limit) & (usual != limit)).sum() for limit in limits))


def minutes(parameters: Sequence[float]) -> list[str]:
    """Name first answers after which a stability is below an hour."""
    days = zip(_RATINGS, parameters[:4], strict=True)
    return [f"{name} ({1440 * each:.0f} minutes)" for name, each in days if each < _HOUR]


def numbers_of(text: str) -> list[float]:
    """Return the parameters of a list as it is pasted."""
    return [float(each) for each in text.split(",")]
