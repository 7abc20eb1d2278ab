"""What a run logs, as data: nothing here knows which tracker will take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srs_eval.nouns import Metric, Part

# What models are ranked by.
DECIDING = "log_loss"


def section(metric: Metric) -> str:
    """Group of charts a metric is shown in."""
    return "calib" if metric.section == "calibration" else metric.section


@dataclass(frozen=True, slots=True)
class Param:
    """A setting of the run, fixed before it starts."""

    name: str  # Dotted path in the resolved configuration, such as ``algo.fit``
    value: str | int | float | bool | None  # Logged as text


@dataclass(frozen=True, slots=True)
class Tag:
    """A fact to search and group runs by; a later tag of the same name replaces it."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Value:
    """One number a run arrived at."""

    name: str  # ``section/metric``, such as ``test/log_loss``: trackers group by the section
    value: float  # NaN and infinities are named as undefined instead of being drawn as numbers


@dataclass(frozen=True, slots=True)
class FigureFiles:
    """A finished figure: PNG to look at, SVG (optional) to print."""

    name: str  # The same in every run, so that runs can be compared figure by figure
    png: Path
    svg: Path | None = None


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """A file to keep with the run, in `folder` of its artefacts ("" is the root)."""

    path: Path
    folder: str = ""


@dataclass(frozen=True, slots=True)
class TableRows:
    """A small table that a tracker can show, some hundred rows at most."""

    name: str
    columns: Mapping[str, Sequence[object]]  # Columns of equal length


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """The review logs a run was trained and tested on."""

    name: str
    digest: str  # Fingerprint of the scored rows
    location: str  # Where the logs came from: a path, or what was simulated
    # How many of each were scored
    users: int
    reviews: int
    # The resolved configuration of what read the logs, to read them again
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredModel:
    """Scores of an algorithm on a data set, to rank models by; no fitted model is kept."""

    name: str  # Name of the algorithm, with its arguments
    options: Mapping[str, Any]  # The resolved configuration of the algorithm
    learned_from: str  # Which data, by which protocol; of a fitted model whose reviews, which fold
    scores: Mapping[str, float]  # Means over users, or of reviews it has not learned from
    dataset: tuple[str, str]  # Name and digest of what these belong to
    description: str = ""  # What a person should read first about it, in Markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedModel(ScoredModel):
    """A fitted memory model as data: what it takes to build it again, and nothing pickled."""

    parameters: tuple[float, ...]  # What was learned
    whole_days: bool  # The clock it was learned on
    parts: tuple[Part, ...] = ()  # What was learned by the parts of a model that is made of several


@dataclass(frozen=True, slots=True)
class Description:
    """What a person should read first about the run, in Markdown."""

    markdown: str


Item = (
    Param
    | Tag
    | Value
    | FigureFiles
    | ArtifactFile
    | TableRows
    | DatasetInfo
    | ScoredModel
    | Description
)
