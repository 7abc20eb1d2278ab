"""The record of a watch: what was asked before the first night, and the days that were seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.errors import ConfigError
from srs_eval.results.files import write_text
from srs_eval.watch.days import Question, Watched

FILE = "watch.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """A watch so far."""

    question: Question
    days: pd.DataFrame  # As in `Watched`: seen once, and never changed
    parent: str = ""  # Run that all nights belong to, in the tracking store
    promoted: Mapping[str, Any] = field(default_factory=dict)  # Day, versions and reason


def read_record(folder: Path, question: Question) -> Record:
    """Read the record of a watch, or begin one; raise `ConfigError` if it asks something else.

    Who may choose the question after seeing days can find anything in them.
    """
    path = folder / FILE
    if not path.exists():
        return Record(question, pd.DataFrame())
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']}")
        begun = Question(**content["question"])
        days = pd.DataFrame(content["days"])
        record = Record(begun, days, str(content["parent"]), dict(content["promoted"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no record of a watch ({error}): give another out=") from error
    changed = [
        f"{name}={now}, and it began with {name}={before}"
        for (name, now), before in zip(
            asdict(question).items(), asdict(begun).values(), strict=True
        )
        if now != before
    ]
    if changed:
        raise ConfigError(
            *(f"{folder}: {each}" for each in changed),
            "what is asked stays the same for the whole watch; begin another with out=FOLDER",
        )
    return record


def continued(record: Record, found: Watched, until: int | None) -> tuple[Record, int, int]:
    """Add the days that are new and over; also return how many, and how many old ones have changed.

    A day that was seen stays as it was: what arrives later, or was rewritten, is only counted.
    `until` is the first day that is not over, since 1970; None: the last day of the logs.
    """
    days = found.days
    if until is None and len(days):
        until = int(days["day"].max())
    days = days[days["day"] < until] if until is not None else days
    if record.days.empty:
        return replace(record, days=days.reset_index(drop=True)), len(days), 0
    new = days[days["day"] > record.days["day"].max()]
    both = record.days.merge(days, on="day", how="left", suffixes=("", "_now"))
    same = np.ones(len(both), bool)
    for name in record.days.columns.drop("day"):
        same &= np.isclose(both[name], both[f"{name}_now"], rtol=1e-9, atol=1e-12)
    whole = pd.concat([record.days, new], ignore_index=True)
    return replace(record, days=whole), len(new), int((~same).sum())


def write_record(folder: Path, record: Record) -> None:
    """Write the record of a watch."""
    content = {
        "version": _VERSION,
        "question": asdict(record.question),
        "parent": record.parent,
        "promoted": dict(record.promoted),
        "days": record.days.to_dict("list"),
    }
    write_text(folder / FILE, json.dumps(content, indent=1) + "\n")
