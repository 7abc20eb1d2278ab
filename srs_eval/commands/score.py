"""Score predictions of other programs: a file with a line of JSON for each user.

  python -m srs_eval.score raw/FSRS-7.jsonl                            a table of metrics
  python -m srs_eval.score raw/FSRS-7.jsonl out=result/FSRS-7.jsonl    … and scores of each user

A line is {"user": 1, "p": [0.91, …], "y": [1, …]}: predicted probabilities of recall and outcomes,
as srs-benchmark writes them with --raw. With lists elapsed_days, nth_review and lapses as well, it
has RMSE(bins). The scores of each user are written as by export to=srs_benchmark: compare reads
them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.commands.cli import Argument, Command, Local, Options
from srs_eval.errors import ConfigError, ScoreError
from srs_eval.exporting.srs_benchmark import result_rows
from srs_eval.metrics.headline import shown_metrics
from srs_eval.metrics.intervals import bounds_of
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.score import score
from srs_eval.metrics.summary import summarise
from srs_eval.nouns import User
from srs_eval.results.files import reading, write_text
from srs_eval.results.published import known_when
from srs_eval.results.run import Run
from srs_eval.results.summary import Summary, panel_table
from srs_eval.text.console import counted, facts, say
from srs_eval.text.plain import one_line

# What RMSE(bins) groups reviews by, as further lists of a line.
_BINS = ("elapsed_days", "nth_review", "lapses")
_EXPECTED = 'expected {"user": 1, "p": [0.9, …], "y": [1, …]}'
_MOST = 5  # problems that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Options):
    """Options of the command."""

    file: Argument[Path]
    """the file of predictions"""
    out: Local[Path | None] = None
    """file for the scores of each user, such as result/NAME.jsonl"""


def print_scores(options: Score) -> int:
    """Print the metrics, and write those of each user."""
    panel = default_panel()
    run = score_lines(options.file, panel)
    reviews = np.array([*run.reviews.values()], np.int64)
    metrics = summarise(
        panel.names,
        np.column_stack([run.scores[name] for name in panel.names]),
        reviews,
        {},
        bounds={metric.name: bounds_of(metric) for metric in panel},
    )
    shown = {
        metric.name: metric.better
        for metric in shown_metrics(panel)
        if metrics[metric.name].n_users
    }
    say(f"{counted(len(reviews), 'user')}, {counted(reviews.sum(), 'review')}\n")
    say(panel_table(Summary(metrics=metrics), shown).write())
    if options.out is not None:
        write_text(options.out, result_rows(run).text + "\n")
        say("\n" + facts({"scores": str(options.out)}))
    return 0


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


command = Command("python -m srs_eval.score", __doc__, Score, print_scores)
