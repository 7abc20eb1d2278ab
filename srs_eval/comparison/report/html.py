"""A comparison as one self-contained HTML page, in light and dark, and for print."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from srs_eval.comparison.page import render
from srs_eval.comparison.report.files import write_text
from srs_eval.comparison.report.plots import differences_figure, strata_figure
from srs_eval.comparison.report.tables import tables
from srs_eval.comparison.report.words import facts_of, figure_note, headline, remarks
from srs_eval.comparison.table import Table
from srs_eval.comparison.verdict import Verdict
from srs_eval.plots.style import annotate, house_style
from srs_eval.plots.versus_plot import versus_figure

HTML = "report.html"
_SCATTERS = 12
# Sections: their name in the list of contents, and the tables that belong there.
_SECTIONS = (
    ("Leaderboards", ("leaderboard_", "beside")),
    ("Against the baseline", ("against_baseline",)),
    ("User by user", ("superiority", "ranks", "users")),
    ("Where they differ", ("where_", "um_plus")),
    ("Runs", ("runs",)),
)


def write_html(verdict: Verdict, folder: Path, *, command: str = "") -> Path:
    """Write the page into a folder; `command` is the command line, for the end of the page."""
    write_text(folder / HTML, page(verdict, command=command))
    return folder / HTML


def page(verdict: Verdict, *, command: str = "") -> str:
    """Format the page."""
    every, drawn = list(tables(verdict)), list(figures(verdict))
    sections = []
    for number, (title, keys) in enumerate(_SECTIONS):
        chosen = [_sortable(table) for table in every if table.key.startswith(keys)]
        if chosen:
            pictures = [_image(figure, alt) for where, alt, figure in drawn if where == title]
            scatters = _scatters(verdict) if title == "User by user" else []
            section = {"id": f"s{number}", "title": title, "tables": chosen}
            sections.append({**section, "pictures": pictures, "scatters": scatters})
    others = len(verdict.runs) - 1
    return render(
        "comparison/report/page.html",
        title=_title(verdict),
        headline=headline(verdict),
        facts=facts_of(verdict),
        remarks=remarks(verdict),
        sections=sections,
        more=f"; the best {_SCATTERS} of {others} runs" if others > _SCATTERS else "",
        command=command,
    )


def figures(verdict: Verdict) -> Iterator[tuple[str, str, Figure]]:
    """Yield section, description and figure of every figure but the scatter plots."""
    if len(verdict.runs) < 2:
        return
    base = verdict.runs[verdict.baseline].name
    differences = _noted(verdict, differences_figure(verdict), verdict.order)
    yield "Against the baseline", f"Differences to {base}", differences
    shown = next((model for model in verdict.order if model != verdict.baseline), None)
    drawn = None if shown is None else strata_figure(verdict, shown)
    if shown is not None and drawn is not None:
        name = verdict.runs[shown].name
        noted = _noted(verdict, drawn, [shown, verdict.baseline])
        yield "Where they differ", f"Where {name} differs from {base}", noted


def _noted(verdict: Verdict, figure: Figure, models: Sequence[int]) -> Figure:
    """Explain the marks of the runs below a figure."""
    annotate(figure, figure_note(verdict, models))
    return figure


def _scatters(verdict: Verdict) -> list[tuple[str, str]]:
    """Draw each run against the baseline, one dot for each user."""
    if verdict.leaderboard.n_users < 2:
        return []
    base, scores = verdict.baseline, verdict.scores
    drawn = []
    for model in [model for model in verdict.order if model != base][:_SCATTERS]:
        if not np.isnan(scores[:, model]).all():
            runs = verdict.runs[model], verdict.runs[base]
            figure = versus_figure(
                *(scores[:, model], scores[:, base]),
                names=(runs[0].marked, runs[1].marked),
                metric=verdict.metric,
                better=verdict.better,
            )
            alt = f"{runs[0].name} and {runs[1].name}, user by user"
            drawn.append(_image(_noted(verdict, figure, [model, base]), alt))
    return drawn


def _sortable(table: Table) -> Table:
    """Let a table be sorted, unless its first row has the sizes of strata."""
    return replace(table, sortable=len(table.rows) > 1 and not table.key.startswith("where_"))


def _image(figure: Figure, alt: str) -> tuple[str, str]:
    """Return a description, and the data of an SVG image, whose ids cannot clash with others."""
    out = io.BytesIO()
    with house_style():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return alt, base64.b64encode(out.getvalue()).decode()


def _title(verdict: Verdict) -> str:
    names = [run.name for run in verdict.paired.every_run]
    listed = " and ".join(names) if len(names) < 3 else f"{len(names)} runs"
    return f"{listed} compared" if len(names) > 1 else listed
