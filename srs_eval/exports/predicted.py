"""Predictions of other programs, a line of JSON for each user, and their scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.comparison.entry import DIGEST, SIZE, Entry, index_of
from srs_eval.comparison.words import one_line
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, ScoreError
from srs_eval.exports.upstream import known_when
from srs_eval.metrics.means import summarise
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.score import score
from srs_eval.runs.summary import Summary

# What RMSE(bins) groups reviews by, as further lists of a line.
_BINS = ("elapsed_days", "nth_review", "lapses")
_EXPECTED = 'expected {"user": 1, "p": [0.9, …], "y": [1, …]}'
_MOST = 5  # Problems that are named


def scored_lines(file: Path, panel: Panel) -> Entry:
    """Score each user of a file, one line after the other.

    A line has ``user``, predictions ``p`` and outcomes ``y``, as the public benchmark writes with
    ``--raw``, and where there ``elapsed_days``, ``nth_review`` and ``lapses``. Raise `ConfigError`
    with what is wrong with the first lines.
    """
    sizes: dict[User, int] = {}
    values, problems = [], []
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            try:
                user, columns = _columns(line)
                if user in sizes:
                    raise ScoreError(f"user {user} has a line already")
                values.append(score(**columns, panel=panel, resamples=0))
                sizes[user] = len(columns["p"])
            except (ScoreError, ValueError) as error:
                problems.append(f"{file}, line {number}: {one_line(str(error))}")
            if len(problems) == _MOST:
                break
    if problems or not sizes:
        raise ConfigError(*(problems or [f"{file}: is empty; {_EXPECTED}"]))
    scores = pd.DataFrame(values, index_of(sizes), panel.names)
    metrics = summarise(
        panel.names,
        scores.to_numpy(),
        np.array([*sizes.values()], np.int64),
        {},
        bounds={metric.name: metric.bounds for metric in panel},
    )
    name = one_line(file.stem)
    facts = Summary(label=name, users=len(sizes), metrics=metrics, when=known_when(name))
    scores[SIZE], scores[DIGEST] = [*sizes.values()], ""
    return Entry(name, file, scores, facts)


def _columns(line: str) -> tuple[User, dict[str, Any]]:
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:
        what = f"no JSON ({error.msg} at character {error.pos + 1})"
        raise ScoreError(f"{what}; {_EXPECTED}") from None
    if not isinstance(content, dict) or not {"user", "p", "y"} <= content.keys():
        raise ScoreError(_EXPECTED)
    user = content["user"]
    if isinstance(user, bool) or not isinstance(user, int | str):
        raise ScoreError(f"user is {user!r}: expected a number or a name")
    further = {name: content[name] for name in _BINS if name in content}
    return user, {"p": content["p"], "recalled": content["y"], **further}
