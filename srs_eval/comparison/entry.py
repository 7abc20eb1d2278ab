"""What is compared: the scores of a model, of a run or published, and its predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from pathlib import Path
from statistics import mode

import numpy as np
import pandas as pd

from srs_eval.comparison.words import one_line
from srs_eval.data.reviews import FloatArray, User
from srs_eval.errors import ConfigError
from srs_eval.metrics.predictions import Predictions, rows_fingerprint, select
from srs_eval.runs.folder import PREDICTIONS, Run
from srs_eval.runs.summary import TRAITS, Summary

MARK = "§"  # Of fits that are not what the name of a model says
SIZE, DIGEST = "reviews", "rows"  # Columns of scores
# Columns that do not depend on the run: logs that differ in one of them are different logs
SAME = {"recalled": "outcomes", "card": "cards", "day": "days"}


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The scores of one model."""

    name: str  # Name in tables
    place: Path  # Folder or file it was read from
    # A row for each user without a missing fold: number and digest of the scored reviews ("" if
    # unknown), and each metric, NaN where not defined
    scores: pd.DataFrame
    facts: Summary  # As far as they are known
    incomplete: tuple[User, ...] = ()  # Users with a missing fold; they have no scores
    run: Run | None = None  # None of published scores

    @property
    def users(self) -> list[User]:
        """Users with scores."""
        return self.scores.index.tolist()

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics."""
        return self.scores.columns.drop([SIZE, DIGEST]).tolist()

    @property
    def traits(self) -> tuple[str, ...]:
        """Traits of the model: keys of `TRAITS`."""
        return tuple(trait for trait in TRAITS if getattr(self.facts, trait))

    @property
    def rank(self) -> int:
        """0 if the model may lead, 1 if some of its fits failed, 2 if it saw the answers."""
        saw_answers = self.facts.sees_truth or self.facts.in_sample
        return 2 if saw_answers else int(self.facts.failed > 0)

    @property
    def marks(self) -> str:
        """Marks for traits and for irregular fits, but for skipped ones, behind a blank."""
        facts, marks = self.facts, "".join(TRAITS[trait][0] for trait in self.traits)
        marks += MARK if facts.failed + facts.fallback + facts.not_converged else ""
        return marks and f" {marks}"

    @property
    def has_digests(self) -> bool:
        """Whether it is known which reviews were scored."""
        return bool((self.scores[DIGEST] != "").all())

    @property
    def has_predictions(self) -> bool:
        """Whether predictions were saved."""
        return self.run is not None and self.run.has_predictions

    def values(self, metric: str, users: Iterable[User]) -> FloatArray:
        """Scores of the users, in their order; NaN where the model has none."""
        scores = self.scores.reindex(columns=[metric])[metric]
        return scores.reindex(index_of(users)).to_numpy(np.float64)


def index_of(users: Iterable[User]) -> pd.Index:
    """Return users, numbers and names, as the index of a frame."""
    return users if isinstance(users, pd.Index) else pd.Index([*users], dtype=object)


def read_entry(folder: Path) -> Entry:
    """Read the scores of a finished run."""
    run = Run.read(folder)
    scores, index = run.by_user, index_of(run.by_user.users)
    table = pd.DataFrame(scores.values, index, scores.names)
    table[SIZE], table[DIGEST] = scores.reviews, [*scores.rows]
    is_whole = np.array(scores.rows) != ""
    incomplete = tuple(index[~is_whole])
    table = table[is_whole] if incomplete else table
    return Entry(one_line(run.facts.label), folder, table, run.facts, incomplete, run)


def usual_protocol(entries: Iterable[Entry]) -> str:
    """Return the protocol of most; of equally frequent ones, the first."""
    return mode([e.facts.protocol for e in entries if e.facts.protocol] or [""])


def with_own_names(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with names that differ: by an unusual protocol, or else by folder or path."""
    about = [(e.name, e.facts.protocol, e.place.name, str(e.place)) for e in entries]
    table = pd.DataFrame(about, columns=["name", "protocol", "folder", "path"], dtype=object)
    names, is_usual = table["name"], table.protocol.isin(["", usual_protocol(entries)])
    names = names.where(is_usual, names + " (" + table.protocol + ")")
    for places in (table.folder, table.path):
        several = places.groupby(names).transform("nunique") > 1
        names = names.mask(several, names + " (" + places + ")")
    names = names.map(one_line)
    if names.duplicated().any():
        twice = ", ".join(sorted({*names[names.duplicated()]}))
        raise ConfigError(f"the same run is given more than once: {twice}")
    return [replace(entry, name=name) for entry, name in zip(entries, names, strict=True)]


def same_reviews(runs: Iterable[Entry], users: Iterable[User]) -> Iterator[dict[str, Predictions]]:
    """Go through users: predictions of the reviews in common, by the name of a run with any."""
    # Copies: entries outlive comparisons, and many of them must not keep their files open
    saved = {run.name: replace(run.run) for run in runs if run.run and run.has_predictions}
    scores = {name: run.by_user for name, run in saved.items()}
    digests = {n: dict(zip(each.users, each.rows, strict=True)) for n, each in scores.items()}
    for user in users:
        parts = {}
        for name, run in saved.items():
            predictions = run.predictions(user, curves=False)
            if predictions is None or rows_fingerprint(predictions) != digests[name][user]:
                raise ConfigError(
                    f"{run.folder / PREDICTIONS}: the predictions of user {user} are not of the "
                    "reviews that scores.parquet is about; the files are of different runs"
                )
            parts[name] = predictions
        is_same = len({digests[name][user] for name in parts}) <= 1
        yield parts if is_same else _in_common(parts)


def _in_common(parts: Mapping[str, Predictions]) -> dict[str, Predictions]:
    """Select the reviews of a user that all runs predicted."""
    rows = reduce(np.intersect1d, [part.row for part in parts.values()])
    common = {name: select(part, np.isin(part.row, rows)) for name, part in parts.items()}
    first, *others = common
    for (column, noun), other in product(SAME.items(), others):
        ours, theirs = (getattr(common[name], column) for name in (first, other))
        if ours is not None and theirs is not None and (ours != theirs).any():
            user, row = common[first].users[0], rows[(ours != theirs).argmax()]
            raise ConfigError(
                f"{first} and {other} are of different logs: for user {user} they have different "
                f"{noun}, first at review {row + 1} of the log, so they have no reviews in common"
            )
    return common
