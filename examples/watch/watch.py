"""Watch what an app predicts: calibration, and a challenger against the champion, every night.

    python watch.py log.parquet --champion p_a --challenger p_b --retention 0.9 --promote recall

`README.md` describes what is asked, and on which assumptions. Exit status 3: a test has reached its
level.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import mlflow
import numpy as np
import pandas as pd
from evidence import Vector, either, first_alarm, log_evidence
from mlflow import MlflowClient
from mlflow.entities import Metric

import srs_eval as se
from srs_eval.data.reviews import Reviews, Source

ALARM = 3
CALIBRATION, BETTER, WORSE = "calibration", "challenger_better", "challenger_worse"
SUMS = ("reviews", "scheduled", "residual", "residual_noise", "gain", "gain_noise")
DAY = 86_400_000  # in milliseconds


@dataclass(frozen=True)
class Question:
    """What is asked of recorded predictions, fixed before the first night."""

    champion: str  # column of the predictions that schedule
    challenger: str | None = None  # column of those that might
    retention: float | None = None  # what is scheduled at; None: any prediction
    margin: float = 0.05  # predictions within it of the retention count for the calibration
    tolerance: float = 0.02  # mean recall may be so far from the predictions
    level: float = 0.01  # chance of a false alarm of each test, in all nights together

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return [name for name in (self.champion, self.challenger) if name is not None]


def days_of(source: Source, question: Question) -> tuple[pd.DataFrame, dict[str, int]]:
    """Add up the reviews of each day over all users; count those of no day, by reason."""
    parts, left_out = [], Counter[str]()
    for user in source.users():
        log = source.read(user)
        if log.first_day is None:
            raise ValueError(f"the log of user {user} has no dates: give the column of times")
        names = list(log.recorded_names)
        p = log.recorded[:, [names.index(name) for name in question.columns]]
        first, same_day = log.elapsed_days < 0, log.elapsed_days == 0
        missing = ~first & ~same_day & np.isnan(p).any(axis=1)
        counts = ~(first | same_day | missing)
        left_out.update(first=int(first.sum()), same_day=int(same_day.sum()))
        left_out.update(without_prediction=int(missing.sum()))
        parts.append(_of_user(log, counts, p[counts].astype(np.float64), question))
    sums = {name: (name, "sum") for name in SUMS}
    days = pd.concat(parts).groupby("day", as_index=False).agg(users=("day", "size"), **sums)
    return days, dict(left_out)


def _of_user(log: Reviews, counts: Vector, p: Vector, question: Question) -> pd.DataFrame:
    """Add up the reviews of one user by day."""
    smallest = np.finfo(np.float64).eps
    p = np.clip(p, smallest, 1 - smallest)
    champion, challenger, recalled = p[:, 0], p[:, -1], log.recalled[counts]
    scheduled = np.ones(len(p), bool)
    if question.retention is not None:
        scheduled = np.abs(champion - question.retention) <= question.margin
    if_recalled = np.log(challenger / champion)
    if_forgotten = np.log((1 - challenger) / (1 - champion))
    middle = (champion + challenger) / 2
    sums = {
        "day": log.day[counts] + log.first_day,
        "reviews": np.ones(len(p)),
        "scheduled": scheduled.astype(np.float64),
        "residual": np.where(scheduled, recalled - champion, 0.0),
        "residual_noise": np.where(scheduled, champion * (1 - champion), 0.0),
        "gain": np.where(recalled, if_recalled, if_forgotten),
        # of the gain's square, before the answer is known
        "gain_noise": middle * if_recalled**2 + (1 - middle) * if_forgotten**2,
    }
    return pd.DataFrame(sums).groupby("day", as_index=False).sum()


class Evidence(NamedTuple):
    """The evidence of one test after each day that it has seen."""

    day: Vector  # since 1970
    log_e: Vector
    reached: int | None  # day of the alarm
    reviews: int
    mean: float  # of recalls less predictions, or of the gain in log loss


def judged(days: pd.DataFrame, question: Question) -> dict[str, Evidence]:
    """Compute the evidence after each day; what was known on a day never changes later."""
    scheduled = days[days["scheduled"] > 0]
    x, noise = _means(scheduled, "residual", "scheduled")
    less, more = (log_evidence(sign * x - question.tolerance, noise) for sign in (-1, 1))
    log_e = {CALIBRATION: (scheduled, either(less, more), "residual", "scheduled")}
    if question.challenger is not None:
        differ = days[days["gain_noise"] > 0]
        x, noise = _means(differ, "gain", "reviews")
        for name, sign in ((BETTER, 1), (WORSE, -1)):
            log_e[name] = (differ, log_evidence(sign * x, noise), "gain", "reviews")
    tests = {}
    for name, (seen, evidence, sums, count) in log_e.items():
        day, n = seen["day"].to_numpy(), float(seen[count].sum())
        alarm = first_alarm(evidence, question.level)
        reached = None if alarm is None else int(day[alarm])
        tests[name] = Evidence(day, evidence, reached, int(n), float(seen[sums].sum() / max(n, 1)))
    return tests


def _means(days: pd.DataFrame, name: str, count: str) -> tuple[Vector, Vector]:
    """Return the mean of each day, and its variance if reviews were independent."""
    n = days[count].to_numpy(np.float64)
    return days[name].to_numpy(np.float64) / n, days[f"{name}_noise"].to_numpy(np.float64) / n**2


@dataclass
class Record:
    """A watch so far: days that were seen stay as they were, and so does the question."""

    question: Question
    days: pd.DataFrame
    parent: str = ""  # run that all nights belong to
    promotion: Mapping[str, str] | None = None  # model, versions before and after, reason

    @classmethod
    def read(cls, path: Path, question: Question) -> Record:
        """Read the record, or begin one; refuse another question than it began with."""
        if not path.exists():
            return cls(question, pd.DataFrame({"day": []}))
        content = json.loads(path.read_text())
        if content["question"] != asdict(question):
            raise ValueError(
                f"{path} began with {content['question']}, and what is asked stays the same: "
                "begin another watch with --out FOLDER"
            )
        days = pd.DataFrame(content["days"])
        return cls(question, days, content["parent"], content["promotion"])

    def add(self, days: pd.DataFrame, until: int | None) -> int:
        """Add the days that are new and over; return how many. The last of a log may go on."""
        over = days[days["day"] < (days["day"].max() if until is None else until)]
        new = over[over["day"] > self.days["day"].max()] if len(self.days) else over
        self.days = pd.concat([self.days, new], ignore_index=True) if len(self.days) else new
        return len(new)

    def write(self, path: Path) -> None:
        """Write the record."""
        content = asdict(self) | {"days": self.days.to_dict("list")}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n")


def promoted(
    model: str, question: Question, test: Evidence, *, dry_run: bool
) -> dict[str, str] | None:
    """Move the alias `champion` if the challenger is shown to be better; the reason is a tag."""
    client = MlflowClient()
    # Also before they are needed, because they may be misspelt.
    before, after = (
        str(client.get_model_version_by_alias(model, alias).version)
        for alias in ("champion", "challenger")
    )
    if test.reached is None or before == after:
        return None
    reason = (
        f"{question.challenger} predicts better than {question.champion}: evidence reached "
        f"{1 / question.level:g} on {_date(test.reached)}; log loss is {test.mean:.5f} lower over "
        f"{test.reviews} reviews on {len(test.day)} days"
    )
    if not dry_run:
        for version in (before, after):
            client.set_model_version_tag(model, version, "promotion", reason)
        client.set_registered_model_alias(model, "champion", after)
    return {"model": model, "before": before, "after": after, "reason": reason}


def log_night(record: Record, facts: Mapping[str, Any], tests: Mapping[str, Evidence]) -> str:
    """Log a night as a run under the parent, whose curves grow; return the parent's id."""
    mlflow.set_experiment("watch")
    limit = math.log10(1 / record.question.level)
    begin = int(record.days["day"].min())
    with mlflow.start_run(run_id=record.parent or None, run_name="watch") as parent:
        client, run_id = MlflowClient(), parent.info.run_id
        mlflow.log_params(asdict(record.question))
        mlflow.set_tags({"last_night": facts["last_day"], "alarms": ", ".join(facts["alarms"])})
        for name, test in tests.items():
            history = client.get_metric_history(run_id, f"evidence/{name}")
            last = max((point.step for point in history), default=-1)
            points = [
                Metric(f"evidence/{key}", value, int(day) * DAY, int(day) - begin)
                for day, log_e in zip(test.day, test.log_e, strict=True)
                if day - begin > last
                for key, value in ((name, log_e / math.log(10)), ("alarm_at", limit))
            ]
            for at in range(0, len(points), 1000):
                client.log_batch(run_id, metrics=points[at : at + 1000])
        with mlflow.start_run(run_name=f"night of {facts['last_day']}", nested=True):
            mlflow.log_dict(dict(facts), "night.json")
            for name, each in facts["tests"].items():
                values = {key: each[key] for key in ("log10_evidence", "mean", "reviews")}
                mlflow.log_metrics({f"{name}/{key}": value for key, value in values.items()})
    return run_id


def night(words: argparse.Namespace) -> dict[str, Any]:
    """Look at the days that are new, promote where that is shown, and log it."""
    question = Question(**{name: getattr(words, name) for name in Question.__annotations__})
    path = words.out / "watch.json"
    record = Record.read(path, question)
    data = dict(word.split("=", 1) for word in words.data)
    days, left_out = days_of(se.source(words.log, p=question.columns, **data), question)
    until = None if words.until is None else int(np.datetime64(words.until, "D").astype(int))
    new = record.add(days, until)
    tests = judged(record.days, question)
    facts = {
        "last_day": _date(record.days["day"].max()) if len(record.days) else "",
        "days": len(record.days),
        "new_days": new,
        "left_out": left_out,
        "alarms": [name for name, test in tests.items() if test.reached is not None],
        "tests": {
            name: {
                "log10_evidence": float(test.log_e[-1] / math.log(10)) if len(test.log_e) else 0.0,
                "reached": None if test.reached is None else _date(test.reached),
                "mean": test.mean,
                "reviews": test.reviews,
            }
            for name, test in tests.items()
        },
    }
    if words.promote and record.promotion is None:
        record.promotion = promoted(words.promote, question, tests[BETTER], dry_run=words.dry_run)
    if not words.dry_run:
        record.write(path)  # whatever happens next, the alias moves once
        if len(record.days):
            record.parent = log_night(record, facts, tests)
            record.write(path)
    return facts | {"promotion": record.promotion}


def _date(day: float) -> str:
    return str(np.datetime64(int(day), "D"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch for a night; print what is seen as JSON, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", help="a table of reviews with the recorded predictions")
    parser.add_argument("data", nargs="*", help="further arguments of srs_eval.source, as user=id")
    parser.add_argument("--champion", required=True)
    parser.add_argument("--challenger")
    parser.add_argument("--retention", type=float)
    for name in ("margin", "tolerance", "level"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Question, name))
    parser.add_argument("--until", help="first day that does not count yet, as 2026-01-31")
    parser.add_argument("--out", type=Path, default=Path("watch"), help="folder of the record")
    parser.add_argument("--promote", help="registered model whose alias champion moves on proof")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    words = parser.parse_args(arguments)
    if words.promote and words.challenger is None:
        parser.error("--promote needs --challenger, the column that might be better")
    facts = night(words)
    sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    return ALARM if facts["alarms"] else 0


if __name__ == "__main__":
    sys.exit(main())
