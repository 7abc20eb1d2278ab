"""What the studies of the book share: options, logs, differences between models, tables, figures.

A study is a program: ``python experiments/NAME/study.py`` prints its tables and writes them, with
the figures, into a folder of ``outputs/``. It imports srs_eval before NumPy, for ``SRS_EVAL_CPU``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hydra.core.hydra_config import HydraConfig
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tabulate import tabulate

import srs_eval as se
from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.options import Columns
from srs_eval.data.reviews import IntArray, Source
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.metrics.means import Estimate, clustered_mean, mean_of_users
from srs_eval.metrics.tally import log_losses
from srs_eval.plots import save_figure
from srs_eval.plots.style import house_style, new_figure, style_axes
from srs_eval.protocol.task import EvaluationProtocol

HERE = Path(__file__).parent
SIMULATED = "simulated"
PUBLISHED = "FSRS-6, published"
# Models by the names of tables: option, and arguments.
MODELS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "FSRS-6": ("fsrs6", {}),
    "FSRS-7": ("fsrs7", {}),
    "FSRS-4.5": ("fsrs45", {}),
    "FSRS-3": ("fsrs3", {}),
    "LSTM": ("lstm", {}),
    "DASH": ("dash", {}),
    "ACT-R": ("act_r", {}),
    "logistic regression": ("logistic", {}),
    "SM-2, trainable": ("sm2_trainable", {}),
    "HLR": ("hlr", {}),
    "share of recalls": ("avg", {}),
    PUBLISHED: ("fsrs6", {"fit": "default"}),
}
_SEED = 2026
# Columns of the log of py-fsrs' author.
_JOSH = Columns(
    card="card_id",
    time=None,
    day="day_offset",
    elapsed_days="elapsed_days",
    elapsed_seconds="elapsed_seconds",
    duration_ms="duration",
)


@dataclass
class Options:
    """Options of every study."""

    small: bool = False  # few data, and only simulated ones: what the tests run
    page: bool = False  # also rewrite the tables and figures beside study.py


@dataclass
class LogOptions(Options):
    """Options of a study of real logs, which is made without those that have no path."""

    josh: str | None = None  # log of one user in the columns of anki-revlogs-10k
    anki_mit: str | None = None  # folder in the layout of anki-revlogs-10k


def existing(path: str) -> Path:
    """Return a path where something is.

    Raises
    ------
    SystemExit
        If nothing is there.
    """
    place = Path(path).expanduser()
    if not place.exists():
        raise SystemExit(f"{path}: no such file or folder")
    return place


def real_logs(options: LogOptions) -> dict[str, Source]:
    """Return the real logs by name; none in the small version."""
    logs: dict[str, Source] = {}
    if options.josh and not options.small:
        logs["josh"] = ReviewTable(path=str(existing(options.josh)), columns=_JOSH)
    if options.anki_mit and not options.small:
        logs["anki-mit"] = RevlogsFolder(existing(options.anki_mit))
    return logs


def simulated(options: Options, small: tuple[int, int], full: tuple[int, int]) -> SyntheticUsers:
    """Return simulated users: how many, and the most reviews of each, by version of the study."""
    users, reviews = small if options.small else full
    return SyntheticUsers(users=users, max_reviews=reviews)


@dataclass(frozen=True)
class Change(Estimate):
    """A mean difference, which tables show with its 99 % interval."""

    @property
    def settled(self) -> bool:
        """Whether the 99 % interval excludes 0."""
        return bool(not self.is_zero and self.p_value < 0.01)

    def __str__(self) -> str:
        if self.is_zero:
            return "0"
        low, high = self.interval()
        return f"{self.mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def change_of_users(differences: np.ndarray) -> Change:
    """Estimate the mean difference over users."""
    return Change(**asdict(mean_of_users(differences)))


def change_of_reviews(differences: np.ndarray, reviews: pd.DataFrame) -> Change:
    """Estimate the mean difference over reviews, which are clustered by card and day."""
    return Change(**asdict(clustered_mean(differences, *clusters(reviews))))


def clusters(reviews: pd.DataFrame) -> tuple[IntArray, IntArray]:
    """Return the card and the day of each review, of all users together."""
    card, day = (reviews.groupby(["user", name]).ngroup().to_numpy() for name in ("card", "day"))
    return card, day


def evaluated(
    source: Source,
    model: str | Algorithm,
    protocol: EvaluationProtocol | None = None,
    **options: Any,
) -> Any:
    """Evaluate a model by log loss; return what `srs_eval.evaluate` does.

    Raises
    ------
    SystemExit
        If a fit failed, whose reviews would be missing.
    """
    options = {"panel": "quick", "curves_per_user": 0, **options}
    result = se.evaluate(
        model, source, protocol=protocol, seed=_SEED, progress=False, fail_fast=False, **options
    )
    failed = result.fits[result.fits["status"] == "failed"]
    if len(failed):
        raise SystemExit(f"{result.facts.label}: {failed['reason'].iloc[0]}")
    return result


def scored_reviews(result: Any, fewest: int = 1) -> pd.DataFrame:
    """Return the reviews of the users who have so many scored ones, with their losses."""
    reviews = result.predictions
    counts = reviews.groupby("user")["row"].transform("size")
    reviews = reviews[counts >= fewest].reset_index(drop=True)
    return reviews.assign(loss=log_losses(reviews["p"].to_numpy(), reviews["recalled"].to_numpy()))


def mean_loss(reviews: pd.DataFrame) -> float:
    """Return the mean over users of their mean losses."""
    return float(reviews.groupby("user")["loss"].mean().mean())


def loss_change(own: pd.DataFrame, other: pd.DataFrame, *, by_user: bool = True) -> Change:
    """Estimate how much more the loss of an evaluation is than that of another.

    The mean is over users, or over reviews: those of a single user, or without `by_user` of all.
    """
    if not own[["user", "row"]].equals(other[["user", "row"]]):
        raise ValueError("the evaluations scored different reviews")
    differences = own["loss"] - other["loss"]
    if by_user and own["user"].nunique() > 1:
        return change_of_users(differences.groupby(own["user"], sort=False).mean().to_numpy())
    return change_of_reviews(differences.to_numpy(), own)


@contextmanager
def panels(
    width: float, height: float, columns: int = 1, title: str = "", rows: int = 1, **options: Any
) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    """Draw into axes in the house style, row by row, below a title."""
    with house_style():
        figure = new_figure(width, height)
        every = figure.subplots(rows, columns, squeeze=False, **options).ravel()
        yield figure, every
        for axes in figure.axes:
            style_axes(axes)
        if title:
            figure.suptitle(title, x=0.01, ha="left")


def ticks_on_log_scale(axes: Axes, values: Sequence[float], form: str = "{:,}") -> None:
    """Mark values on a logarithmic axis of x, and nothing between them."""
    axes.set_xscale("log")
    axes.set_xticks(values, [form.format(value) for value in values])
    axes.minorticks_off()


def write(
    name: str,
    options: Options,
    tables: Mapping[str, pd.DataFrame],
    figures: Mapping[str, Figure],
    formats: Mapping[str, str],
) -> None:
    """Print the tables of a study, and write them and its figures into the folder of the command.

    With ``page=true``, also write tables and figures into the page of the study, or the tables of
    the small version into its folder ``small``.
    """
    folder = Path(HydraConfig.get().runtime.output_dir)
    write_tables(tables, folder / "tables")
    for key, figure in figures.items():
        save_figure(figure, folder / "figures", key, formats=("png",))
    if options.page and options.small:
        write_tables(tables, HERE / name / "small")
    elif options.page:
        write_page(HERE / name / "README.md", tables, formats)
        for key, figure in figures.items():
            save_figure(figure, HERE / name, key, formats=("png",))
    for key, table in tables.items():
        print(f"\n{key}\n{as_text(table, formats, 'simple')}")
    print(f"\ntables and figures: {folder}")


def write_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write each table as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, table in tables.items():
        table.to_csv(folder / f"{key}.csv", index=False)


def write_page(
    folder: Path, tables: Mapping[str, pd.DataFrame], formats: Mapping[str, str]
) -> None:
    """Replace the tables of README.md, each between two comments with its name."""
    page = folder / "README.md"
    text = page.read_text(encoding="utf-8")
    for key, table in tables.items():
        before, begin, rest = text.partition(f"<!-- {key} -->\n")
        _, end, after = rest.partition(f"<!-- /{key} -->")
        text = f"{before}{begin}\n{as_text(table, formats, 'github')}\n\n{end}{after}"
    page.write_text(text, encoding="utf-8")


def as_text(table: pd.DataFrame, formats: Mapping[str, str], style: str) -> str:
    """Format a table in a style of tabulate.

    Numbers have the format of their column, such as ``.1%``; by default ``.4f``, or ``,d``.
    """
    columns, sides = {}, []
    for name, column in table.items():
        is_number = pd.api.types.is_numeric_dtype(column) and column.dtype != bool
        usual = ",d" if pd.api.types.is_integer_dtype(column) else ".4f"
        form = formats.get(str(name), usual) if is_number else ""
        columns[str(name)] = ["" if pd.isna(value) else format(value, form) for value in column]
        sides.append("right" if is_number else "left")
    return tabulate(columns, "keys", style, colalign=sides, disable_numparse=True)
