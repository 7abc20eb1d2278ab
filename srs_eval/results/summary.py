"""What a run says of itself in ``summary.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

from pydantic import BeforeValidator

from srs_eval.metrics.summary import MetricSummary
from srs_eval.nouns import Better
from srs_eval.nouns.when import IN_WORDS, UNKNOWN, WHEN, when_named
from srs_eval.results.coverage import Count, Coverage, whole_number
from srs_eval.results.fit_counts import FitCounts
from srs_eval.stats.significance import LEVEL
from srs_eval.text.console import counted, interval
from srs_eval.text.table import Table
from srs_eval.text.validated import validated

_ARROWS = {"lower": "lower", "higher": "higher", "zero": "near 0", "neither": ""}
# A count that a file may lack, and that is not null there.
Told = Annotated[int | None, BeforeValidator(whole_number)]


def _numbers(row: Mapping[str, float | None]) -> dict[str, float]:
    """Read numbers from JSON, where null stands for NaN."""
    return {name: math.nan if value is None else value for name, value in dict(row).items()}


def _metric(row: Mapping[str, Any]) -> dict[str, float]:
    """Read the numbers of a metric; an earlier release did not write all of them."""
    unknown = dict.fromkeys((f.name for f in fields(MetricSummary)), math.nan)
    return {**unknown, "n_users": 0, **_numbers(row)}


def _texts(tags: Any) -> Any:
    """Read tags, of which an earlier release wrote some as numbers."""
    return {name: str(tags[name]) for name in tags} if isinstance(tags, Mapping) else tags


def _coverage(content: Any) -> Any:
    return Coverage.from_json(content) if isinstance(content, Mapping) else content


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of ``summary.json``."""

    # Names of the options
    algo: str = ""
    label: str = ""  # The algorithm with those of its arguments that are not at their defaults
    data: str = ""
    protocol: str = ""  # Name of the evaluation protocol
    # Whether the scored reviews are validation rows, which test rows come after
    is_validation: bool = False
    # Users without a missing fold, their scored reviews, and how many of these were forgotten
    users: Count = 0
    reviews: Count = 0
    forgotten: Count = 0
    # As in `FitCounts`; None where an earlier release did not write it
    fits: Told = None
    failed: Told = None
    fallback: Told = None
    skipped: Told = None
    not_converged: Told = None
    # The panel, over these users
    metrics: Mapping[str, Annotated[MetricSummary, BeforeValidator(_metric)]] = field(
        default_factory=dict
    )
    # Confusion counts and rates at each threshold, over all reviews: see `threshold_rows`
    thresholds: tuple[Annotated[Mapping[str, float], BeforeValidator(_numbers)], ...] = ()
    # What the intervals are over: ``users``, or ``cards and days`` of a single user
    interval_over: str = "users"
    interval_level: float = LEVEL  # Confidence level of the intervals
    # When predictions were made, one of `WHEN`; ``unknown`` where an earlier release did not write
    # it and it cannot be derived
    when: str = UNKNOWN
    # As the algorithm declares
    sees_truth: bool = False
    pretrained: bool = False
    in_sample: bool = False
    seed: int = 0  # Seed of every fit, together with the user and the fold
    # Rows of the source that are not reviews, counted by reason
    left_out: Mapping[str, int] = field(default_factory=dict)
    # Remarks of the source on the logs, and of algorithms on their fits
    notes: tuple[str, ...] = ()
    fit_notes: tuple[str, ...] = ()
    # Digests of the logs, and of the scored reviews
    data_fingerprint: str = ""
    rows_fingerprint: str = ""
    # What the scores rest on; None where an earlier release did not write it
    coverage: Annotated[Coverage | None, BeforeValidator(_coverage)] = None
    # What finds the run again, among it the digests of its configuration and its code
    tags: Annotated[Mapping[str, str], BeforeValidator(_texts)] = field(default_factory=dict)

    @property
    def fit_counts(self) -> FitCounts:
        """Counts of fits by how they ended."""
        return FitCounts(*(getattr(self, f.name) or 0 for f in fields(FitCounts)))

    @property
    def rests_on(self) -> str:
        """Users and reviews with scores, and if known what was left out for which reason."""
        if self.coverage is not None:
            return self.coverage.in_words
        return f"{counted(self.users, 'user')}, {counted(self.reviews, 'scored review')}"

    @property
    def figure_note(self) -> str:
        """When predictions were made, and irregular fits: what a reader of a figure should know."""
        notes = [f"predicted {IN_WORDS[self.when]}", self.fit_counts.in_words]
        return "; ".join(note for note in notes if note)

    @property
    def config_hash(self) -> str:
        """Digest of every setting that can change a number; "" where it is not known."""
        return str(self.tags.get("config_hash", ""))

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file, without what is unknown; NaN is not yet null."""
        found = asdict(self) | {"coverage": self.coverage and self.coverage.as_json()}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Summary:
        """Build from the content of the file; entries that it lacks have their defaults.

        Raise `LookupError`, `TypeError` or `ValueError` if there is no label, or an entry is not
        what it should be.
        """
        content["label"]
        return validated(cls, {**content, "when": _when(content)}, is_json=True)


def panel_table(facts: Summary, shown: Mapping[str, Better]) -> Table:
    """Tabulate metrics with their intervals, and with what chance gives a perfect model."""
    rows, several = [], facts.interval_over == "users"
    for name, better in shown.items():
        row, floor = facts.metrics[name], facts.metrics.get(f"{name}_floor")
        rows.append(
            {
                "metric": name,
                "better": _ARROWS[better],
                "mean over users" if several else "score": row.mean_users,
                f"99 % over {facts.interval_over}": interval(row.lo, row.hi),
                "by chance": "" if floor is None else floor.mean_users,
                "users": row.n_users,
            }
        )
    table = Table.of_records(rows, align="ll")
    return table if several else table.without("users")


def _when(content: Mapping[str, Any]) -> Any:
    """Return when predictions were made; earlier releases wrote whether a model was online.

    A model that was not online was checked to be frozen while it was tested. An online one may
    have learned until the day before or until the review.
    """
    if "when" in content:
        if not isinstance(content["when"], str):
            return content["when"]  # which is refused
        found = when_named(content["when"])
        return found if found in WHEN else UNKNOWN
    if content.get("sees_truth"):
        return "at_review"
    return "previous_review" if content.get("online") is False else UNKNOWN
