"""Score predictions of other programs: a file with a line of JSON for each user.

  python -m srs_eval.score raw/FSRS-7.jsonl                            a table of metrics
  python -m srs_eval.score raw/FSRS-7.jsonl out=result/FSRS-7.jsonl    … and scores of each user

A line is {"user": 1, "p": [0.91, …], "y": [1, …]}: predicted probabilities of recall and outcomes,
as srs-benchmark writes them with --raw. With lists elapsed_days, nth_review and lapses as well, it
has RMSE(bins). The scores of each user are written as by export to=srs_benchmark: compare and power
read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_eval.commands.cli import Argument, Command, Local, Options
from srs_eval.exporting.srs_benchmark import result_rows
from srs_eval.metrics.headline import shown_metrics
from srs_eval.metrics.intervals import bounds_of
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.summary import summarise
from srs_eval.results.files import whole_file
from srs_eval.results.scored_lines import score_lines
from srs_eval.results.summary import Summary, panel_table
from srs_eval.text.console import counted, facts, say


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Options):
    """Options of the command."""

    file: Argument[Path]
    """the file of predictions"""
    out: Local[Path | None] = None
    """file for the scores of each user, such as result/NAME.jsonl"""


def score(options: Score) -> int:
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
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(options.out) as partial:
            partial.write_text(result_rows(run).text + "\n", encoding="utf-8")
        say("\n" + facts({"scores": str(options.out)}))
    return 0


command = Command("python -m srs_eval.score", __doc__, Score, score)
