"""Scores of predictions that other programs have written: a line of JSON for each user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.score import score
from srs_eval.nouns import User
from srs_eval.results.files import reading
from srs_eval.results.published import known_when
from srs_eval.results.run import Run
from srs_eval.results.summary import Summary
from srs_eval.text.plain import one_line

# What RMSE(bins) groups reviews by, as further lists of a line.
_BINS = ("elapsed_days", "nth_review", "lapses")
_EXPECTED = 'expected {"user": 1, "p": [0.9, …], "y": [1, …]}'
_MOST = 5  # problems that are named


def score_lines(file: Path, panel: Panel) -> Run:
    """Score each user of a file, one line after the other.

    A line has ``user``, predictions ``p`` and outcomes ``y``, as the public benchmark writes with
    ``--raw``, and where there ``elapsed_days``, ``nth_review`` and ``lapses``. Raise `ConfigError`
    with what is wrong with the first lines.
    """
    if not file.is_file():
        raise ConfigError(f"{file}: there is no such file")
    sizes: dict[User, int] = {}
    values, problems = [], []
    with reading(file), file.open(encoding="utf-8") as lines:
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
    return Run(
        name=one_line(file.stem),
        place=file,
        rows=dict.fromkeys(sizes, ""),
        reviews=sizes,
        scores={name: np.array([each[name] for each in values]) for name in panel.names},
        facts=Summary(label=one_line(file.stem), when=known_when(file.stem)),
    )


def _columns(line: str) -> tuple[User, dict[str, Any]]:
    content = json.loads(line)
    if not isinstance(content, dict) or not {"user", "p", "y"} <= content.keys():
        raise ScoreError(_EXPECTED)
    user = content["user"]
    if isinstance(user, bool) or not isinstance(user, int | str):
        raise ScoreError(f"user is {user!r}: expected a number or a name")
    further = {name: content[name] for name in _BINS if name in content}
    return user, {"p": content["p"], "recalled": content["y"], **further}
