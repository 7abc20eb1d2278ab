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

from srs_eval.commands.cli import Command, Is, Key, Options
from srs_eval.commands.export import FORMAT, To, deliver
from srs_eval.commands.overrides import values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Options):
    """Options of the command."""

    log: Annotated[Path, Is.ARGUMENT, "one review log"]
    to: Annotated[To, FORMAT]
    algo: Annotated[str, "the algorithm; per_group for a list for each preset"] = "fsrs6"
    algo_options: Annotated[Mapping[str, str], Key("algo.KEY"), "its options"] = field(
        default_factory=dict
    )
    data: Annotated[
        Mapping[str, str], Key("data.KEY"), "arguments of the data, as in data.decks='Spanish*'"
    ] = field(default_factory=dict)
    user: Annotated[str | None, "the user (by default the only one)"] = None
    out: Annotated[Path | None, Is.LOCAL, "the file to write (by default standard output)"] = None


def fit(options: Fit) -> int:
    """Fit, and hand the parameters over."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.api.fitting import fit

    values = values_of("algo", options.algo_options) | values_of("data", options.data)
    fitted = fit(options.algo, options.log, progress=False, **values)
    deliver(fitted.export(options.to, user=options.user), options.out)
    return 0


command = Command("python -m srs_eval.fit", __doc__, Fit, fit)
