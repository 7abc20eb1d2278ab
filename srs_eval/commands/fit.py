"""Fit an algorithm to all reviews of a log, for a scheduler; nothing is evaluated.

  python -m srs_eval.fit my.colpkg to=anki
  python -m srs_eval.fit my.colpkg to=anki algo=per_group        a list for each preset that differs
  python -m srs_eval.fit log.csv to=json data.columns.card=item user=7

Whether the parameters predict better than others is what python -m srs_eval measures. A fit that
fails or is skipped has no parameters: exit status 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from srs_eval.commands.cli import Argument, Command, Key, Local, Options
from srs_eval.commands.export import To, deliver
from srs_eval.commands.overrides import values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Options):
    """Options of the command."""

    log: Argument[Path]
    """one review log"""
    to: To
    """anki, the list for Anki's field "FSRS parameters"; py_fsrs, JSON for py-fsrs's
    Scheduler.from_json; or json, for other programs
    """
    algo: str = "fsrs6"
    """the algorithm; per_group for a list for each preset"""
    algo_options: Annotated[Mapping[str, str], Key("algo.KEY")] = field(default_factory=dict)
    """its options"""
    data: Annotated[Mapping[str, str], Key("data.KEY")] = field(default_factory=dict)
    """arguments of the data, as in data.decks='Spanish*'"""
    user: str | None = None
    """the user (by default the only one)"""
    out: Local[Path | None] = None
    """the file to write (by default standard output)"""


def fit(options: Fit) -> int:
    """Fit, and hand the parameters over."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.api.fitting import fit

    values = values_of("algo", options.algo_options) | values_of("data", options.data)
    fitted = fit(options.algo, options.log, progress=False, **values)
    deliver(fitted.export(options.to, user=options.user), options.out)
    return 0


command = Command("python -m srs_eval.fit", __doc__, Fit, fit)
