"""Where a person stands among published users of like retention and size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.collection.section import Section
from srs_eval.collection.study import Study, reason_of
from srs_eval.collection.words import log_loss
from srs_eval.errors import ConfigError
from srs_eval.results.published import read_published
from srs_eval.text.console import counted
from srs_eval.text.upstream import is_plainly

QUESTION = "How do I compare with other people?"
# Published models, the newest first, and the algorithms that they are.
MODELS = {"FSRS-6": Fsrs6, "FSRS-5": Fsrs5}
_CONSTANT = "AVG"
# How near the error of the constant is that of users of like retention, and their sizes.
_NEAR = 0.05
_SIZE = 2
_FEWEST = 50


def others(study: Study, path: Path) -> Section:
    """Return the section."""
    runs = {run.name: run for run in read_published(path)}
    found = {model: _in_whole_days(runs, model) for model in (*MODELS, _CONSTANT)}
    name = next((name for name in MODELS if found[name]), None)
    if name is None or not found[_CONSTANT]:
        raise ConfigError(
            f"published={path}: has {', '.join(runs)}; expected {_CONSTANT} and one of "
            f"{', '.join(MODELS)}"
        )
    ours, constant = study.evaluated(name, MODELS[name](fit="reference")), study.others["avg"]
    if not ours.complete or not constant.complete:
        return Section(QUESTION, f"This is not known: {reason_of(ours)}.")
    model, average = runs[found[name]], runs[found[_CONSTANT]]
    users = [user for user in model.rows if user in average.rows]
    theirs, base = (each.values("log_loss", users) for each in (model, average))
    sizes = np.array([model.reviews[user] for user in users])
    size = ours.facts.reviews
    alike = (sizes >= size / _SIZE) & (sizes <= size * _SIZE)
    alike &= np.abs(base / log_loss(constant) - 1) <= _NEAR
    peers = theirs[alike & np.isfinite(theirs)]
    if len(peers) < _FEWEST:
        answer = f"Too few published users are like you: {len(peers)}."
    else:
        share = float(np.mean(peers > log_loss(ours)))
        answer = (
            f"{name} predicts you better than {100 * share:.0f} % of "
            f"{counted(len(peers), 'published user')} like you."
        )
    notes = [
        f"Like you: {size // _SIZE:,} to {size * _SIZE:,} scored reviews, and about your retention "
        "(the error of always predicting the average so far is within 5 % of yours).",
        f"Compared with {counted(len(users), 'user')} in {path.name}. {name} was fitted to your "
        "reviews as the public benchmark fitted it to theirs.",
    ]
    return Section(QUESTION, answer, notes)


def _in_whole_days(runs: Iterable[str], model: str) -> str:
    """Return the name of the result of a model as it is, in whole days; "" if there is none."""
    named = [name for name in runs if is_plainly(name, model) and "-secs" not in name]
    return min(named, key=len, default="")
