"""A simulated app of 300 users over 120 days, whose predictions are watched every night.

    python examples/watch/app.py out=FOLDER          simulate, and watch night by night
    python examples/watch/app.py out=FOLDER users=40 nights=7    smaller, and once a week

Before each answer the app stores what FSRS-6 with its published parameters predicts (`champion`),
and what FSRS-6 predicts that was fitted the night before to the user's own reviews (`challenger`).
From day 90 on one recalled answer in eight is recorded as forgotten: a fault of the app.

Then histories are repeated in which nothing is wrong, 200 times for each test: alarms must be as
rare as promised. In these, answers depend on each other by user, card, and day.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from mlflow import MlflowClient

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.nouns import Fold, Reviews, Task
from srs_eval.watch.command import command
from srs_eval.watch.days import Question
from srs_eval.watch.judge import BETTER, CALIBRATION, WORSE, judge

DAYS, DRIFT, SHARE = 120, 90, 1 / 8
START = pd.Timestamp("2026-01-01", tz="UTC")
ASKED = Question("champion", "challenger", retention=0.9, near=0.05, tolerance=0.03)


@dataclass(frozen=True, slots=True)
class Nightly:
    """Predict each day by a fit of the night before."""

    name: ClassVar[str] = "nightly"
    version: ClassVar[str] = "1"
    folds: ClassVar[int] = DAYS

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Divide one user's log by days."""
        log_row = np.flatnonzero((reviews.elapsed_days != 0) | same_day)
        seen = reviews.take(log_row)
        seen = replace(seen, elapsed=np.maximum(seen.elapsed_days, 0.0), row=np.arange(len(seen)))
        targets = np.flatnonzero(seen.elapsed_days > 0)
        begins = np.flatnonzero(np.diff(seen.day[targets], prepend=-1))
        folds = [
            Fold(number, train=targets[: block[0]], test=targets[block])
            for number, block in enumerate(np.split(np.arange(len(targets)), begins[1:]))
            if len(block)
        ]
        nothing = np.zeros(len(seen), np.int64)
        return Task(seen, folds, nothing, nothing, log_row, warm_start=True)


@dataclass(frozen=True, slots=True)
class App:
    """The users of the app, up to the last day, with the fault from day `DRIFT` on."""

    users_: int
    name: ClassVar[str] = "app"
    location: ClassVar[str] = "simulated"

    def users(self) -> range:
        """Return the users."""
        return range(1, self.users_ + 1)

    def read(self, user: int) -> Reviews:
        """Simulate one user."""
        people = SyntheticUsers(users=self.users_, size_scale=0.1, max_reviews=4000)
        log = people.read(user)
        log = log.take(log.day < DAYS)
        rng = np.random.default_rng([90, user])
        fault = (log.day >= DRIFT) & (log.elapsed_days > 0) & (rng.random(len(log)) < SHARE)
        return replace(log, rating=np.where(fault, 1, log.rating), truth=None)


def table_of(app: App) -> pd.DataFrame:
    """Return the table that the app has written: a row for each answer."""
    parts = []
    evaluations = [
        EvaluateUser(app, algorithm, Nightly(), seed=1, curves=0)
        for algorithm in (Fsrs6(fit="default"), Fsrs6())
    ]
    for user in app.users():
        log, found = app.read(user), [evaluate(user) for evaluate in evaluations]
        second = np.clip(np.cumsum(np.full(len(log), 7.0)) % 50_000, 0, None)
        time = START + pd.to_timedelta(log.day * 86_400 + 18_000 + np.sort(second), unit="s")
        rows = pd.DataFrame({"user": user, "card": log.card, "rating": log.rating, "time": time})
        for name, one in zip(ASKED.columns, found, strict=True):
            rows[name] = np.nan
            if one.predictions is not None:
                rows.loc[one.predictions.row, name] = one.predictions.p
        parts.append(rows.assign(predicted_at=time - pd.Timedelta("10s")))
    return pd.concat(parts, ignore_index=True)


def night_by_night(table: pd.DataFrame, folder: Path, every: int) -> None:
    """Watch the app as its table grows; the challenger is registered, and promoted on proof."""
    store = f"sqlite:///{folder / 'mlflow.db'}"
    registered(store, folder)
    log, day = folder / "app.parquet", (table["time"] - START).dt.days
    moves: set[str] = set()
    for until in range(every, DAYS + 1, every):
        table[day < until].to_parquet(log)
        last = f"{START + pd.Timedelta(days=until):%Y-%m-%d}"
        status = command(
            [
                str(log),
                *(f"{name}={getattr(ASKED, name)}" for name in ("champion", "challenger")),
                *(f"{name}={getattr(ASKED, name)}" for name in ("retention", "tolerance")),
                "data.columns.user=user",
                "data.columns.recorded_at=predicted_at",
                f"until={last}",
                f"out={folder / 'watch'}",
                "promote=recall",
                f"tracking.uri={store}",
            ]
        )
        moved = MlflowClient(tracking_uri=store).get_model_version_by_alias("recall", "champion")
        moves.add(f"{last} status {status}, champion is version {moved.version}")
    (folder / "nights.txt").write_text("\n".join(sorted(moves)) + "\n")


def registered(store: str, folder: Path) -> None:
    """Register the two models as versions 1 and 2."""
    client = MlflowClient(tracking_uri=store)
    client.create_registered_model("recall")
    for alias, options in (("champion", {"fit": "default"}), ("challenger", {"fit": "newton"})):
        place = folder / alias
        place.mkdir(parents=True, exist_ok=True)
        (place / "fsrs6.json").write_text(json.dumps(options))
        version = client.create_model_version("recall", source=str(place)).version
        client.set_registered_model_alias("recall", alias, version)


def repeated(table: pd.DataFrame, times: int, rng: np.random.Generator) -> dict[str, int]:
    """Count alarms in histories without a difference: what was predicted stays, answers are new.

    For the calibration, answers are drawn from what the champion predicts. For the comparison they
    are drawn from the probability at which both have the same expected log loss. Each user, card,
    and day of a user is easier or harder than predicted, and so is each day for everybody, by up to
    a fifth of the lesser of recall and forgetting.
    """
    rows = table.dropna(subset=[*ASKED.columns])
    p = rows[[*ASKED.columns]].to_numpy()
    day = (rows["time"] - START).dt.days.to_numpy()
    gain = np.log(p[:, 1] / p[:, 0]), np.log((1 - p[:, 1]) / (1 - p[:, 0]))
    differ = gain[0] != gain[1]
    equal = np.where(differ, -gain[1] / np.where(differ, gain[0] - gain[1], 1), p[:, 0])
    groups = [
        rows.groupby(by).ngroup().to_numpy()
        for by in (["user"], ["user", "card"], ["user", rows["time"].dt.date], rows["time"].dt.date)
    ]
    near = np.abs(p[:, 0] - ASKED.retention) <= ASKED.near
    middle = p.mean(axis=1)
    sums = {
        "reviews": np.ones(len(p)),
        "near": near,
        "residual_noise": near * p[:, 0] * (1 - p[:, 0]),
        "gain_noise": middle * gain[0] ** 2 + (1 - middle) * gain[1] ** 2,
    }
    fixed = {name: np.bincount(day, values, DAYS) for name, values in sums.items()}
    alarms = dict.fromkeys((CALIBRATION, BETTER, WORSE), 0)
    for _ in range(times):
        signs = sum(rng.choice([-1.0, 1.0], group.max() + 1)[group] for group in groups) / 4
        for true in (p[:, 0], equal):
            recalled = rng.random(len(p)) < true + 0.2 * signs * np.minimum(true, 1 - true)
            answered = {
                "residual": np.where(near, recalled - p[:, 0], 0),
                "gain": np.where(recalled, *gain),
            }
            drawn = {name: np.bincount(day, each, DAYS) for name, each in answered.items()}
            days = pd.DataFrame({"day": np.arange(DAYS), **fixed, **drawn})
            found = judge(days[days["reviews"] > 0], ASKED).alarms
            tests = {CALIBRATION} if true is not equal else {BETTER, WORSE}
            for name in tests & {*found}:
                alarms[name] += 1
    return alarms


def main(words: list[str]) -> None:
    """Run the example."""
    given = {"out": "app", "users": "300", "nights": "1", "times": "200"}
    given |= dict(word.split("=", 1) for word in words)
    folder = Path(given["out"]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    table = table_of(App(int(given["users"])))
    table.to_parquet(folder / "table.parquet")
    alarms = repeated(table, int(given["times"]), np.random.default_rng(200))
    for name, count in alarms.items():
        line = f"{name}: {count} false alarms in {given['times']} histories, level {ASKED.level:g}"
        sys.stdout.write(line + "\n")
    night_by_night(table, folder, int(given["nights"]))


if __name__ == "__main__":
    main(sys.argv[1:])
