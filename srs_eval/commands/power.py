"""`python -m srs_eval.power`: how many users a comparison of two models needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from srs_eval.commands.arguments import Words, carry_out, explained, sort_words
from srs_eval.comparison.compare import directions
from srs_eval.comparison.prereg import REGIONS, claim_of
from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray
from srs_eval.results.run import load_run
from srs_eval.stats.estimate import Estimate, mean_of_users
from srs_eval.stats.power import Study, upper_deviation, users_needed
from srs_eval.stats.significance import LEVEL
from srs_eval.text.console import interval, number, say
from srs_eval.text.table import Table

PROGRAM = "python -m srs_eval.power"
KEYS = {
    "difference": "smallest mean difference that matters, such as 0.001 (with runs: theirs)",
    "sd": "standard deviation of the difference among users (with runs: theirs)",
    "users": "users that there will be: print the power with them",
    "power": "chance of finding the difference (0.8)",
    "metric": "metric of the runs: log_loss (default), brier, auc, rmse_bins, …",
    "direction": "the verdict of a pre-registration that is to be found, in place of a "
    "significant difference: better, not_worse, equivalent; difference= is the registered one",
    "advantage": "true advantage for direction=: for better it is above difference= (with runs: "
    "that of RUN over OTHER_RUN), for others 0 unless given",
    "level": "level of the interval that decides (0.99)",
}
_RANGES = {
    "power": (0.0, 1.0, "a share between 0 and 1"),
    "level": (0.899999, 1.0, "a number from 0.9 to below 1"),
    "advantage": (-math.inf, math.inf, "a finite number"),
}
# From two fits of one model to two different models.
_SDS = (0.002, 0.005, 0.01, 0.02, 0.05)
# Smaller pilots promise too much, also by the upper end: docs/arena/preregistration.md.
_PILOT = 50
_HELP = f"""Compute how many users settle a difference between two models.

  {PROGRAM} RUN OTHER_RUN                       two finished runs on the same users
  {PROGRAM} RUN OTHER_RUN difference=0.001      … and the difference that matters
  {PROGRAM} difference=0.001 sd=0.01 users=500  without runs
  {PROGRAM} difference=0.001                    for several standard deviations
  {PROGRAM} difference=0.005 direction=better advantage=0.01 sd=0.02
  {PROGRAM} RUN OTHER_RUN difference=0.005 direction=equivalent

Options, KEY=VALUE:

{explained(KEYS)}

Studies are simulated, and decided as compare and pre-registrations decide: by the paired interval
over users, the wider of Student's and Hall's on each side, of one comparison at {LEVEL:.0%}. With
runs, users are drawn from those of the pilot, so that its skewness counts; without, differences
are normal. Numbers of users are rounded up to two digits.
A significant difference is not the verdict "better by at least difference=": where the true
advantage is exactly that, the verdict is undecided with any number of users, and where it is a
little more, many are needed. For "equivalent", both sides have to hold.
The standard deviation that a pilot finds is uncertain. A second row has the upper end of its
one-sided 90 % interval: plan with it, and take {_PILOT} users or more.
Flags: --help, --version. Exit status: 0, 1 if something failed, 2 if not understood."""


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _answer(sort_words(words, KEYS, choices={"direction": tuple(REGIONS)})),
        words,
        program=PROGRAM,
        help_page=_HELP,
    )


def _answer(request: Words) -> int:
    given, direction = _numbers(request), request.options.get("direction", "")
    wanted, level = given.get("power", 0.8), given.get("level", LEVEL)
    pilot = _differences(request, direction) if request.paths else None
    found = None if pilot is None else mean_of_users(pilot)
    if pilot is not None and found is not None:
        say(
            f"{len(pilot)} users: mean {'advantage' if direction else 'difference'} "
            f"{number(found.mean, 5)}, 99 % interval {interval(*found.interval())}, standard "
            f"deviation among users {number(float(pilot.std(ddof=1)), 5)}\n"
        )
    difference = given["difference"] if found is None else given.get("difference", found.mean)
    true, least, most = abs(difference), 0.0, math.inf
    if direction:
        usual = found.mean if found and direction == "better" else 0.0
        true = given.get("advantage", usual)
        least, most = (bound * difference for bound in REGIONS[direction])
        claim = claim_of(direction, difference)
        say(f"{direction}: kept if the {100 * level:g} % interval of the advantage is {claim}\n")
    elif pilot is not None and found is not None and found.mean < 0:
        pilot = -pilot  # the difference is looked for on the side where it was found
    sds = _deviations(given, pilot)
    if difference == 0 or sds[0] == 0:
        raise ConfigError(
            f"difference={difference:g} sd={sds[0]:g}: both must be above 0; the runs may be the "
            "same, or give difference= and sd="
        )
    users = int(given["users"]) if "users" in given else None
    rows = []
    for sd in sds:
        study = Study(least - true, most - true, sd, pilot, level)
        row = [f"{abs(difference):.3g}", *([f"{true:.3g}"] if direction else []), f"{sd:.3g}"]
        row.append(_count(study.users_for(wanted)) if least < true < most else "no number")
        rows.append(row if users is None else [*row, f"{study.power(users):.2f}"])
    headers = ["difference", *(["advantage"] if direction else []), "sd"]
    headers += [f"users for power {wanted:g}"]
    headers += [] if users is None else [f"power with {users:,} users"]
    say(Table(headers, rows, "").write())
    if pilot is not None and len(sds) > 1:
        say(
            f"\nThe second standard deviation is the upper end of what these {len(pilot)} users "
            "allow (one-sided 90 %): plan with it."
        )
        if len(pilot) < _PILOT:
            say(f"A pilot of fewer than {_PILOT} users is too small for either to be relied on.")
    if direction and not least < true < most:
        say(
            f"\nNo number of users: an advantage of {true:.3g} is not inside what is registered. A "
            "hypothesis that is true exactly at the difference is undecided."
        )
    if found is not None and direction == "better" and "advantage" not in given:
        say(
            "\nThe advantage is that of the pilot, as uncertain as its interval above. Better give "
            "advantage=, the true one to plan for."
        )
    if found is not None and "difference" not in given:
        say(_caution(found, sds[-1], wanted))
    return 0


def _deviations(given: Mapping[str, float], pilot: FloatArray | None) -> list[float]:
    """Return the standard deviations to compute with; of a pilot its own, and the upper end."""
    if "sd" in given:
        return [given["sd"]]
    return [*_SDS] if pilot is None else [float(pilot.std(ddof=1)), upper_deviation(pilot)]


def _numbers(request: Words) -> dict[str, float]:
    """Return the options that are numbers; raise an error for all that is wrong."""
    problems: list[str] = []
    options = request.options
    given = {
        key: _number(key, value, problems)
        for key, value in options.items()
        if key not in ("metric", "direction")
    }
    if len(request.paths) not in (0, 2):
        problems.append(f"{len(request.paths)} runs: name two, or none")
    if not request.paths and "difference" not in given:
        problems.append("name two finished runs, or the difference that matters: difference=0.001")
    direction = options.get("direction")
    if direction is None:
        problems += [f"{key}= goes with direction=" for key in ("advantage",) if key in given]
    elif request.paths and "difference" not in given:
        problems.append(f"direction={direction} needs difference=, the smallest one of the file")
    elif direction == "better" and "advantage" not in given and not request.paths:
        problems.append(
            "direction=better needs advantage=, a true advantage above difference=: exactly at it, "
            "the hypothesis is undecided"
        )
    request.usable(*problems)
    return given


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
        f"\nThe difference of a pilot is uncertain: its 99 % interval {text}. Better give "
        "difference=, the smallest difference that matters."
    )


def _count(users: int | None) -> str:
    """Format a number of users, rounded up to two digits."""
    if users is None:
        return "over a billion"
    step = 10 ** max(len(str(users)) - 2, 0)
    return f"{-(-users // step) * step:,}"


def _number(key: str, value: str, problems: list[str]) -> float:
    """Read a number, and note what is wrong with it."""
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    low, high, expected = _RANGES.get(key, (0.0, math.inf, "a number above 0"))
    if not low < found < high:
        problems.append(f"{key}={value}: expected {expected}")
    return found


def _differences(request: Words, direction: str) -> FloatArray:
    """Return the differences of the users that both runs scored on the same reviews.

    They are scores of the first less those of the second; with a direction, its advantages.
    """
    first, second = (load_run(path) for path in request.paths)
    metric = request.options.get("metric", "log_loss")
    for run in (first, second):
        if metric not in run.scores:
            raise ConfigError(f"metric={metric}: {run.name} has {', '.join(run.scores)}")
    scores = [dict(zip(run.rows, run.scores[metric], strict=True)) for run in (first, second)]
    same = [user for user, rows in first.rows.items() if second.rows.get(user) == rows]
    differences: FloatArray = np.array([scores[0][user] - scores[1][user] for user in same])
    differences = differences[~np.isnan(differences)]
    if len(differences) < 3:
        raise ConfigError(f"{len(differences)} users have the same scored reviews in both runs")
    if not direction:
        return differences
    better = directions([first, second]).get(metric)
    if better is None:
        raise ConfigError(f"metric={metric}: neither higher nor lower values are better")
    return differences if better == "higher" else -differences
