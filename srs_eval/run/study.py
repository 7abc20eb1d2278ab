"""Studies of the folder experiments: programs that answer a question with tables and figures.

A study is a file ``experiments/NAME/study.py`` with a function ``run(options) -> Findings``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd

from srs_eval.errors import ConfigError
from srs_eval.plots.style import save_figure
from srs_eval.results.files import FIGURES
from srs_eval.run.jobs import JobOutcome, Steps
from srs_eval.run.report import places
from srs_eval.text.console import say
from srs_eval.text.table import Style, Table
from srs_eval.tracking import items
from srs_eval.tracking.tracker import RunInfo, Tracker, tracked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPOSITORY = "https://github.com/srs-eval/srs_eval"
TABLES = "tables"


@dataclass(frozen=True)
class Findings:
    """What a study has found."""

    answer: str  # The answer to its question, in one sentence
    learned: Sequence[str]  # What was learned: sentences whose numbers come from the tables
    tables: Mapping[str, pd.DataFrame]  # Numbers are formatted by `formats`, text is shown as it is
    figures: Mapping[str, Figure]
    # The numbers to compare runs of the study by
    metrics: Mapping[str, float] = field(default_factory=dict)
    left_out: Sequence[str] = ()  # Parts for which no data were given
    failed: Sequence[str] = ()  # Fits that failed, for which there are no numbers
    # Formats of numbers by column, such as ``.1%``; ``.4f`` and ``,d`` by default
    formats: Mapping[str, str] = field(default_factory=dict)

    def text(self, table: str, style: Style = "text") -> str:
        """Format a table as text, or in another style."""
        columns, cells, align = self.tables[table], [], ""
        for name, column in columns.items():
            is_number = pd.api.types.is_numeric_dtype(column)
            is_number &= not pd.api.types.is_bool_dtype(column)
            usual = ",d" if pd.api.types.is_integer_dtype(column) else ".4f"
            spec = self.formats.get(str(name), usual) if is_number else ""
            cells.append(["" if pd.isna(value) else format(value, spec) for value in column])
            align += "r" if is_number else "l"
        return Table([*map(str, columns)], [*zip(*cells, strict=True)], align).write(style)

    def summary(self) -> str:
        """Format the answer, what was learned, and what was left out, in Markdown."""
        lines = [self.answer, "", *(f"- {sentence}" for sentence in self.learned)]
        return "\n".join([*lines, *(f"- Left out: {part}" for part in self.left_out)])


Study = Callable[[SimpleNamespace], Findings]


def load_study(name: str, folder: Path) -> Study:
    """Load the function of a study, which is a folder in the folder of studies."""
    if not name.isidentifier():
        raise ConfigError(f"study.name={name}: not the name of a study")
    file = folder / name / "study.py"
    if not file.is_file():
        raise ConfigError(
            f"experiment={name}: there is no {file}. The studies are in the repository: "
            f"git clone {REPOSITORY}, then run the command in its folder"
        )
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # modules that studies share
    module_name = f"study_{name}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and worker processes look it up
    spec.loader.exec_module(module)
    study: Study = module.run
    return study


def run_study(
    study: Study,
    name: str,
    options: Mapping[str, Any],
    folder: Path,
    tracker: Tracker,
    *,
    is_single: bool,
) -> Steps[tuple[JobOutcome, None]]:
    """Run a study; print, write and log what it has found."""
    yield
    info = RunInfo(name, tags={"kind": "study"}, experiment=name, folder=folder)
    with tracked(tracker, info) as run:
        tracker.log(items.Param(f"study.{key}", value) for key, value in options.items())
        found = study(SimpleNamespace(**options))
        show(found)
        tracker.log(_items(found, folder))
        run.end = "failed" if found.failed else "finished"
    links = run.links
    say()
    if is_single:
        at = {"results": str(folder), "MLflow UI": links.ui_command, "this run": links.run_url}
        say(places(at))
    outcome = JobOutcome(
        name, "ok", run_id=links.run_id, ui_command=links.ui_command, view_url=links.run_url
    )
    if found.failed:
        message = f"failed: {', '.join(found.failed)}"
        outcome = replace(outcome, status="failed", message=message, exit_status=1)
    return outcome, None


def show(found: Findings) -> None:
    """Print what a study has found."""
    for name in found.tables:
        say(f"\n{name}\n{found.text(name)}")
    say(f"\n{found.summary()}")


def _items(found: Findings, folder: Path) -> Iterator[items.Item]:
    """Write the files of a study, and yield what is logged of it."""
    yield items.Tag("kind", "study")
    (folder / TABLES).mkdir(parents=True, exist_ok=True)
    for name, table in found.tables.items():
        csv, markdown = (folder / TABLES / f"{name}.{ending}" for ending in ("csv", "md"))
        table.to_csv(csv, index=False)
        markdown.write_text(found.text(name, "github") + "\n", encoding="utf-8")
        yield from (items.ArtifactFile(csv, TABLES), items.ArtifactFile(markdown, TABLES))
        yield items.TableRows(name, {str(column): table[column].tolist() for column in table})
    for name, figure in found.figures.items():
        (png,) = save_figure(figure, folder / FIGURES, name, formats=("png",))
        yield items.FigureFiles(name, png)
    for name, value in found.metrics.items():
        yield items.Value(f"study/{name}", value)
    yield items.Description(found.summary())
