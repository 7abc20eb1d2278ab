"""Compute how many users settle a difference between two models.

  python -m srs_eval.power RUN OTHER_RUN                       two finished runs on the same users
  python -m srs_eval.power result/A.jsonl result/B.jsonl       … or published scores of each user
  python -m srs_eval.power RUN OTHER_RUN difference=0.001      … and the difference that matters
  python -m srs_eval.power difference=0.001 sd=0.01 users=500  without runs
  python -m srs_eval.power difference=0.001                    for several standard deviations
  python -m srs_eval.power difference=0.005 direction=better advantage=0.01 sd=0.02
  python -m srs_eval.power RUN OTHER_RUN difference=0.005 direction=equivalent

Studies are simulated, and decided as compare and pre-registrations decide: by the paired interval
over users, the wider of Student's and Hall's on each side, of one comparison at 99 %. With runs,
users are drawn from those of the pilot, so that its skewness counts; without, differences are
normal. Numbers of users are rounded up to two digits.
A significant difference is not the verdict "better by at least difference=": where the true
advantage is exactly that, the verdict is undecided with any number of users, and where it is a
little more, many are needed. For "equivalent", both sides have to hold.
The standard deviation that a pilot finds is uncertain. A second row has the upper end of its
one-sided 90 % interval: plan with it, and take 50 users or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from srs_eval.commands.cli import Argument, Command, Options
from srs_eval.comparison.compare import directions
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.matching import shared_users
from srs_eval.comparison.prereg import REGIONS, claim_of
from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray
from srs_eval.stats.estimate import Estimate, mean_of_users
from srs_eval.stats.power import Study, upper_deviation, users_needed
from srs_eval.stats.significance import LEVEL
from srs_eval.text.console import interval, listed, number, say
from srs_eval.text.table import Table

# From two fits of one model to two different models.
_SDS = (0.002, 0.005, 0.01, 0.02, 0.05)
# Smaller pilots promise too much, also by the upper end: docs/arena/preregistration.md.
_PILOT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Power(Options):
    """Options of the command."""

    runs: Argument[tuple[Path, ...]] = ()
    """two finished runs or files of published scores, or none"""
    difference: Annotated[float | None, Gt(0)] = None
    """smallest mean difference that matters, such as 0.001 (with runs: theirs)"""
    sd: Annotated[float | None, Gt(0)] = None
    """standard deviation of the difference among users (with runs: theirs)"""
    users: Annotated[int | None, Gt(0)] = None
    """users that there will be: print the power with them"""
    power: Annotated[float, Gt(0), Lt(1)] = 0.8
    """chance of finding the difference"""
    metric: str = "log_loss"
    """metric of the runs, such as brier, auc or rmse_bins"""
    direction: Literal["better", "not_worse", "equivalent"] | None = None
    """the verdict of a pre-registration that is to be found, in place of a significant difference:
    better, not_worse, equivalent; difference= is the registered one
    """
    advantage: float | None = None
    """true advantage for direction=: for better it is above difference= (with runs: that of RUN
    over OTHER_RUN), for others 0 unless given
    """
    level: Annotated[float, Ge(0.9), Lt(1)] = LEVEL
    """level of the interval that decides"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        if len(self.runs) not in (0, 2):
            yield f"{', '.join(map(str, self.runs))}: name two finished runs, or none"
        if not self.runs and self.difference is None:
            yield "name two finished runs, or the difference that matters: difference=0.001"
        if self.direction is None and self.advantage is not None:
            yield "advantage= goes with direction="
        elif self.direction and self.runs and self.difference is None:
            yield f"direction={self.direction} needs difference=, the smallest one of the file"
        elif self.direction == "better" and self.advantage is None and not self.runs:
            yield (
                "direction=better needs advantage=, a true advantage above difference=: exactly at "
                "it, the hypothesis is undecided"
            )


def power(options: Power) -> int:
    """Print how many users are needed."""
    direction, pilot = options.direction, _differences(options) if options.runs else None
    found = None if pilot is None else mean_of_users(pilot)
    if pilot is not None and found is not None:
        say(
            f"{len(pilot)} users: mean {'advantage' if direction else 'difference'} "
            f"{number(found.mean, 5)}, 99 % interval {interval(*found.interval())}, standard "
            f"deviation among users {number(float(pilot.std(ddof=1)), 5)}\n"
        )
    difference = options.difference or (found.mean if found else 0.0)
    true, region = abs(difference), (0.0, math.inf)
    if direction:
        usual = found.mean if found and direction == "better" else 0.0
        true = usual if options.advantage is None else options.advantage
        region = (REGIONS[direction][0] * difference, REGIONS[direction][1] * difference)
        sure, claim = f"{100 * options.level:g} %", claim_of(direction, difference)
        say(f"{direction}: kept if the {sure} interval of the advantage is {claim}\n")
    elif pilot is not None and found is not None and found.mean < 0:
        pilot = -pilot  # the difference is looked for on the side where it was found
    # of a pilot its own, and the upper end
    own = _SDS if pilot is None else (float(pilot.std(ddof=1)), upper_deviation(pilot))
    sds = own if options.sd is None else (options.sd,)
    if difference == 0 or sds[0] == 0:
        raise ConfigError(
            f"difference={difference:g} sd={sds[0]:g}: both must be above 0; the runs may be the "
            "same, or give difference= and sd="
        )
    rows: list[dict[str, str]] = []
    is_inside = region[0] < true < region[1]
    for sd in sds:
        study = Study(region[0] - true, region[1] - true, sd, pilot, options.level)
        needed = _count(study.users_for(options.power)) if is_inside else "no number"
        row = {"difference": f"{abs(difference):.3g}"}
        row |= {"advantage": f"{true:.3g}"} if direction else {}
        row |= {"sd": f"{sd:.3g}", f"users for power {options.power:g}": needed}
        if options.users is not None:
            row[f"power with {options.users:,} users"] = f"{study.power(options.users):.2f}"
        rows.append(row)
    say(Table([*rows[0]], [[*row.values()] for row in rows], "").write())
    if not is_inside:
        say(
            f"\nNo number of users: an advantage of {true:.3g} is not inside what is registered. A "
            "hypothesis that is true exactly at the difference is undecided."
        )
    for remark in () if pilot is None else _remarks(options, pilot, sds):
        say(f"\n{remark}")
    return 0


def _remarks(options: Power, pilot: FloatArray, sds: Sequence[float]) -> Iterator[str]:
    """Say how far a pilot can be relied on."""
    if len(sds) > 1:
        small = f"\nA pilot of fewer than {_PILOT} users is too small for either to be relied on."
        yield (
            f"The second standard deviation is the upper end of what these {len(pilot)} users "
            f"allow (one-sided 90 %): plan with it.{small if len(pilot) < _PILOT else ''}"
        )
    if options.direction == "better" and options.advantage is None:
        yield (
            "The advantage is that of the pilot, as uncertain as its interval above. Better give "
            "advantage=, the true one to plan for."
        )
    if options.difference is None:
        yield _caution(mean_of_users(pilot), sds[-1], options.power)


def _caution(pilot: Estimate, sd: float, wanted: float) -> str:
    """Format the users needed at both ends of the interval of a pilot's difference."""
    low, high = pilot.interval()
    near, far = (
        f"about {_count(users_needed(end, sd, power=wanted))}"
        for end in sorted(map(abs, (low, high)))
    )
    text = f"needs {far} users at one end, {near} at the other"
    if low <= 0 <= high:
        text = f"includes 0; its far end needs {far} users"
    return (
        f"The difference of a pilot is uncertain: its 99 % interval {text}. Better give "
        "difference=, the smallest difference that matters."
    )


def _count(users: int | None) -> str:
    """Format a number of users, rounded up to two digits."""
    if users is None:
        return "over a billion"
    step = 10 ** max(len(str(users)) - 2, 0)
    return f"{-(-users // step) * step:,}"


def _differences(options: Power) -> FloatArray:
    """Return the differences of the users that both runs scored on the same reviews.

    They are scores of the first less those of the second; with a direction, its advantages.
    """
    runs, _ = read_runs(options.runs)
    if len(runs) != 2:
        raise ConfigError(f"{len(runs)} runs ({listed([run.name for run in runs])}): name two")
    (first, second), metric = runs, options.metric
    for run in runs:
        if metric not in run.scores:
            raise ConfigError(f"metric={metric}: {run.name} has {', '.join(run.scores)}")
    same = shared_users(runs)
    differences: FloatArray = first.values(metric, same) - second.values(metric, same)
    differences = differences[~np.isnan(differences)]
    if len(differences) < 3:
        raise ConfigError(f"{len(differences)} users have the same scored reviews in both runs")
    if not options.direction:
        return differences
    better = directions(runs).get(metric)
    if better is None:
        raise ConfigError(f"metric={metric}: neither higher nor lower values are better")
    return differences if better == "higher" else -differences


command = Command("python -m srs_eval.power", __doc__, Power, power)
