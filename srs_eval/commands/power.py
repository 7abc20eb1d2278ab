"""`python -m srs_eval.power`: how many users a comparison of two models needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from srs_eval.commands.arguments import Words, carry_out, explained, sort_words
from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray
from srs_eval.results.run import load_run
from srs_eval.stats.estimate import Estimate, mean_of_users
from srs_eval.stats.power import power_of, users_needed
from srs_eval.stats.significance import ALPHA
from srs_eval.text.console import interval, number, say, table

PROGRAM = "python -m srs_eval.power"
KEYS = {
    "difference": "smallest mean difference that matters, such as 0.001 (with runs: theirs)",
    "sd": "standard deviation of the difference among users (with runs: theirs)",
    "users": "users that there will be: print the power with them",
    "power": "chance of finding the difference (0.8)",
    "metric": "metric of the runs: log_loss (default), brier, auc, rmse_bins, …",
}
# From two fits of one model to two different models.
_SDS = (0.002, 0.005, 0.01, 0.02, 0.05)
_HELP = f"""Compute how many users settle a difference between two models.

  {PROGRAM} RUN OTHER_RUN                       two finished runs on the same users
  {PROGRAM} RUN OTHER_RUN difference=0.001      … and the difference that matters
  {PROGRAM} difference=0.001 sd=0.01 users=500  without runs
  {PROGRAM} difference=0.001                    for several standard deviations

Options, KEY=VALUE:

{explained(KEYS)}

The comparison is paired, over users, by Student's test of one difference at {ALPHA:.0%}. A pilot
with few users may find too small a standard deviation, and then promises too much: take 50 users
or more. Flags: --help, --version. Exit status: 0, 1 if something failed, 2 if not understood."""


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _answer(sort_words(words, KEYS, choices={})),
        words,
        program=PROGRAM,
        help_page=_HELP,
    )


def _answer(request: Words) -> int:
    problems: list[str] = []
    given = {key: _number(key, value, problems) for key, value in request.options.items()}
    if len(request.paths) not in (0, 2):
        problems.append(f"{len(request.paths)} runs: name two, or none")
    if not request.paths and "difference" not in given:
        problems.append("name two finished runs, or the difference that matters: difference=0.001")
    request.usable(*problems)
    wanted = given.get("power", 0.8)
    pilot: Estimate | None = None
    if request.paths:
        differences = _differences(request)
        found = mean_of_users(differences)
        sd = float(differences.std(ddof=1))
        say(
            f"{len(differences)} users: mean difference {number(found.mean, 5)}, 99 % interval "
            f"{interval(*found.interval())}, standard deviation among users {number(sd, 5)}\n"
        )
        pilot = None if "difference" in given else found
        given = {"difference": found.mean, "sd": sd} | given
    sds = [given["sd"]] if "sd" in given else list(_SDS)
    rows = [_row(abs(given["difference"]), sd, given.get("users"), wanted) for sd in sds]
    headers = ["difference", "sd", f"users for power {wanted:g}"]
    headers += [f"power with {given['users']:,.0f} users"] if "users" in given else []
    say(table(rows, headers, text=0))
    if pilot is not None:
        say(_caution(pilot, given["sd"], wanted))
    return 0


def _caution(pilot: Estimate, sd: float, wanted: float) -> str:
    """Format the users needed at both ends of the interval of a pilot's difference."""
    low, high = pilot.interval()
    near, far = sorted(map(abs, (low, high)))
    text = f"{_count(users_needed(far, sd, power=wanted))} users"
    if low <= 0 <= high:
        text = f"includes 0; its far end needs {text}"
    else:
        text = (
            f"needs {text} at one end, {_count(users_needed(near, sd, power=wanted))} at the other"
        )
    return (
        f"\nThe difference of a pilot is uncertain: its 99 % interval {text}. Better give "
        "difference=, the smallest difference that matters."
    )


def _count(users: int | None) -> str:
    return "over a billion" if users is None else f"{users:,}"


def _row(difference: float, sd: float, users: float | None, wanted: float) -> list[str]:
    if sd == 0 or difference == 0:
        raise ConfigError(
            f"difference={difference:g} sd={sd:g}: both must be above 0; the runs may be the same, "
            "or give difference= and sd="
        )
    needed = users_needed(difference, sd, power=wanted)
    row = [f"{difference:.3g}", f"{sd:.3g}", _count(needed)]
    return row if users is None else [*row, f"{power_of(difference, sd, int(users)):.2f}"]


def _number(key: str, value: str, problems: list[str]) -> float:
    """Read a number, and note what is wrong with it."""
    if key == "metric":
        return math.nan
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    most = 1 if key == "power" else math.inf
    if not 0 < found < most:
        expected = "a share between 0 and 1" if key == "power" else "a number above 0"
        problems.append(f"{key}={value}: expected {expected}")
    return found


def _differences(request: Words) -> FloatArray:
    """Return the differences of the users that both runs scored on the same reviews."""
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
    return differences
