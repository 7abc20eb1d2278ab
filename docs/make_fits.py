"""Compare ways to fit FSRS on real logs, and write the table into docs/fits.md.

    python docs/make_fits.py JOSH.csv ANKI_MIT

JOSH.csv is the log of py-fsrs' author in the columns of anki-revlogs-10k, ANKI_MIT a folder in
the layout of that data set with two users.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.schema import reviews_from_columns
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.bins import RmseBins
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import EvaluationProtocol, FloatArray, Predictions, Reviews, Source, User
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.stats.estimate import clustered_mean

PAGE = Path(__file__).with_name("fits.md")
BETWEEN = re.compile(r"(<!-- table -->\n).*?(<!-- /table -->)", re.S)
SEED = 2026
REFITS = (5, 50)


@dataclass(frozen=True)
class Josh:
    """The log of one user, from a file."""

    path: Path
    name: str = "josh"

    @property
    def location(self) -> str:
        """Path of the file."""
        return str(self.path)

    def users(self) -> tuple[User, ...]:
        """Return the user."""
        return ("josh",)

    def read(self, user: User) -> Reviews:
        """Read the log."""
        table = pd.read_csv(self.path)
        return reviews_from_columns(
            user=user,
            source=self.path.name,
            card=table["card_id"],
            rating=table["rating"],
            day=table["day_offset"],
            elapsed_days=table["elapsed_days"],
            elapsed_seconds=table["elapsed_seconds"],
            duration_ms=table["duration"],
        )


@dataclass(frozen=True)
class Way:
    """A version of FSRS and a way to fit it."""

    version: str
    clock: str
    fit: str
    recency: str
    refits: int
    algorithm: Fitted
    protocol: EvaluationProtocol


def ways() -> Iterator[Way]:
    """Yield everything that is compared; the first of a version is what the rest is set against."""
    versions: list[tuple[str, type[Fitted], str]] = [
        ("FSRS-4.5", Fsrs45, "days"),
        ("FSRS-5", Fsrs5, "days"),
        ("FSRS-6", Fsrs6, "days"),
        ("FSRS-7", Fsrs7, "days"),
        ("FSRS-7", Fsrs7, "seconds"),
    ]
    for version, algorithm, clock in versions:
        published = "steep" if version == "FSRS-7" else "mild"
        for refits in REFITS:
            protocol: EvaluationProtocol = (
                SrsBenchmarkRefit(refits)
                if clock == "days"
                else SrsBenchmarkEqualised(refits=refits)
            )
            for fit, recency in (
                ("reference", "none"),
                ("reference", published),
                ("newton", "none"),
                ("newton", "mild"),
            ):
                fitted = algorithm(fit=fit, recency=recency)
                yield Way(version, clock, fit, recency, refits, fitted, protocol)


def evaluated(source: Source, way: Way) -> list[Predictions]:
    """Fit and predict every user of a source."""
    work = EvaluateUser(source, way.algorithm, way.protocol, SEED, curves=0)
    found = []
    for user in source.users():
        evaluation = work(user)
        missing = [fit for fit in evaluation.fits if not fit.predicts]
        if missing or evaluation.predictions is None:
            raise SystemExit(f"{way}: {missing}")
        found.append(evaluation.predictions)
    return found


def main(josh: Path, others: Path) -> None:
    """Evaluate everything, and rewrite the table."""
    sources: list[Source] = [Josh(josh), RevlogsFolder(others)]
    rows = []
    first: dict[tuple[str, int], list[FloatArray]] = {}
    for way in ways():
        cells: list[object] = [way.version, way.clock, way.fit, way.recency, way.refits]
        for number, source in enumerate(sources):
            predictions = evaluated(source, way)
            losses = [LogLoss().per_review(user) for user in predictions]
            against = first.setdefault((way.version + way.clock, number), losses)
            cells += _scores(predictions, losses, against)
        rows.append(cells)
    headers = ["version", "clock", "fit", "recency", "fits"]
    for log in ("josh", "two"):
        headers += [f"{log}: log loss", "RMSE(bins)", "difference", "99 % interval"]
    table = tabulate(rows, headers, tablefmt="github", disable_numparse=True)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BETWEEN.sub(rf"\1\n{table}\n\n\2", text), encoding="utf-8")


def _scores(
    predictions: list[Predictions], losses: list[FloatArray], against: list[FloatArray]
) -> list[str]:
    """Means over users; the difference is over all reviews, with likeness within cards and days."""
    log_loss = np.mean([loss.mean() for loss in losses])
    bins = np.mean([RmseBins()(user) for user in predictions])
    differences = np.concatenate(
        [loss - other for loss, other in zip(losses, against, strict=True)]
    )
    cards = _together([user.card for user in predictions])
    days = _together([user.day for user in predictions if user.day is not None])
    if not differences.any():
        return [f"{log_loss:.4f}", f"{bins:.4f}", "", ""]
    found = clustered_mean(differences, cards, days)
    low, high = found.interval()
    return [f"{log_loss:.4f}", f"{bins:.4f}", f"{found.mean:+.4f}", f"[{low:+.4f}, {high:+.4f}]"]


def _together(codes: list[np.ndarray]) -> np.ndarray:
    """Return cluster numbers that differ between users."""
    pairs = [
        np.column_stack([np.full(len(code), number), code]) for number, code in enumerate(codes)
    ]
    _, numbers = np.unique(np.concatenate(pairs), axis=0, return_inverse=True)
    return numbers.ravel()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
