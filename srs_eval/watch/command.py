"""Watch what an app predicts: calibration, and a challenger against the champion, every night.

  python -m srs_eval.watch log.parquet champion=p_a retention=0.9 data.columns.user=user
  python -m srs_eval.watch log.parquet champion=p_a challenger=p_b promote=recall dry_run=true
  python -m srs_eval.watch outputs/2026-01-31/12-00-00_recorded            the log of a run

A log has a column of predictions for each program, stored before the answers: see docs/watch.md.
Each test gathers evidence from day to day, as an e-value: without a difference, the chance that it
ever reaches 1/level is at most level=, however often it is looked at. What is asked is fixed by the
first night; out= has the record, and days that were seen stay as they were.

Each night is a run of the tracking store, under one parent with the curves. The last line printed
is JSON. Nothing is sent anywhere. Exit status 3: a test has reached its level.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from srs_eval.commands.cli import Argument, Command, Key, Local, Options
from srs_eval.text.console import say

ALARM = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(Options):
    """Options of the command."""

    log: Argument[str]
    """a log, a name of data= such as sql, or the folder of a run with algo=recorded"""
    champion: str = "p"
    """column of the predictions that schedule"""
    challenger: str | None = None
    """column of those that might"""
    retention: Annotated[float | None, Gt(0), Lt(1)] = None
    """retention that is scheduled at: predictions within near= of it count for the calibration (all
    of them)
    """
    near: Annotated[float, Gt(0), Le(1)] = 0.05
    """how near"""
    tolerance: Annotated[float, Ge(0), Lt(1)] = 0.02
    """mean recall may differ from the predictions by so much: 0.02 is two percentage points"""
    level: Annotated[float, Gt(0), Le(0.2)] = 0.01
    """chance of a false alarm of each test, in all nights together"""
    until: date | None = None
    """first day that does not count yet, as 2026-01-31 (today)"""
    out: Local[Path] = Path("watch")
    """folder of the record and the figure"""
    promote: str | None = None
    """registered model whose alias champion moves to the version with the alias challenger, once
    that is shown to be better
    """
    dry_run: bool = False
    """true: say what would happen, and write nothing"""
    tracking: Literal["mlflow", "none"] = "mlflow"
    """where nights are logged"""
    uri: Annotated[str | None, Key("tracking.uri")] = None
    """the tracking store (MLFLOW_TRACKING_URI, or mlflow.db)"""
    experiment: Annotated[str, Key("tracking.experiment")] = "srs_eval_watch"
    """experiment of the nights"""
    artifacts: Annotated[str | None, Key("tracking.artifacts")] = None
    """place for the files of a new experiment"""
    data: Annotated[Mapping[str, str], Key("data.KEY")] = field(default_factory=dict)
    """any argument of data=csv, or of the kind of log that is named, as in data.columns.user=user
    """

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        if self.champion == self.challenger:
            yield f"champion={self.champion} and challenger={self.challenger} are the same column"
        if self.promote and not self.challenger:
            yield f"promote={self.promote} needs challenger=, the column that might be better"


def watch(options: Watch) -> int:
    """Look at what is new, print and log it, and promote the challenger where that is shown."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.results.claim import claim
    from srs_eval.watch.days import Question
    from srs_eval.watch.night import night_of

    asked = ("champion", "challenger", "retention", "near", "tolerance", "level")
    question = Question(**{name: getattr(options, name) for name in asked})
    with claim(options.out):
        found = night_of(options, question)
    for line in found.lines:
        say(line)
    say(json.dumps(found.facts))
    return ALARM if found.facts["alarms"] else 0


command = Command("python -m srs_eval.watch", __doc__, Watch, watch)
