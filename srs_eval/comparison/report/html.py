"""A comparison as one self-contained HTML page, in light and dark, and for print."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from srs_eval.comparison.report.grids import Grid, grids
from srs_eval.comparison.report.plots import differences_figure, strata_figure
from srs_eval.comparison.report.words import facts_of, figure_note, headline, remarks
from srs_eval.comparison.verdict import Verdict
from srs_eval.plots.style import annotate, house_style
from srs_eval.plots.versus_plot import versus_figure
from srs_eval.results.files import whole_file
from srs_eval.text.escapes import PAGE_STYLE, SORT_SCRIPT, for_html, html_head

HTML = "report.html"
_SCATTERS = 12
# Sections: their name in the list of contents, and the tables that belong there.
_SECTIONS = (
    ("Leaderboards", ("leaderboard_", "beside")),
    ("Against the baseline", ("against_baseline",)),
    ("User by user", ("superiority", "ranks", "users")),
    ("Where they differ", ("where_",)),
    ("Runs", ("runs",)),
)
# Beside the style that all pages share.
_STYLE = """
img { max-width: 100%; height: auto; }
/* Figures are drawn on white: in the dark their brightness is turned over and their hues kept. */
@media screen and (prefers-color-scheme: dark) {
  img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; }
}
.scatters { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 12px; }
.scatters figure { margin: 0; }
"""


def write_html(verdict: Verdict, folder: Path, *, command: str = "") -> Path:
    """Write the page into a folder; `command` is the command line, for the end of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / HTML) as partial:
        partial.write_text(page(verdict, command=command), encoding="utf-8")
    return folder / HTML


def page(verdict: Verdict, *, command: str = "") -> str:
    """Format the page."""
    style = PAGE_STYLE.read_text(encoding="utf-8") + _STYLE
    tables = list(grids(verdict))
    body: list[str] = []
    contents: list[str] = []
    drawn = list(figures(verdict))
    for number, (title, keys) in enumerate(_SECTIONS):
        chosen = [grid for grid in tables if grid.key.startswith(keys)]
        if not chosen:
            continue
        contents.append(f'<a href="#s{number}">{for_html(title)}</a>')
        body.append(f'<section><h2 id="s{number}">{for_html(title)}</h2>')
        body += [_image(figure, alt) for section, alt, figure in drawn if section == title]
        body += [_table(grid) for grid in chosen]
        body += _scatters(verdict) if title == "User by user" else []
        body.append("</section>")
    notes = "".join(f"<li>{for_html(remark)}</li>" for remark in remarks(verdict))
    typed = f"<p><code>{for_html(command)}</code></p>" if command else ""
    return "\n".join(
        [
            *html_head(_title(verdict), style, SORT_SCRIPT.read_text(encoding="utf-8")),
            f"<h1>{for_html(_title(verdict))}</h1>",
            f'<p class="lead">{for_html(headline(verdict))}</p>',
            *(f'<p class="facts">{for_html(fact)}</p>' for fact in facts_of(verdict)),
            f'<ul class="notes">{notes}</ul>' if notes else "",
            f"<nav>{''.join(contents)}</nav>",
            *body,
            f"<footer><p>Made by srs_eval from saved scores; nothing was fitted again.</p>{typed}"
            "</footer></body></html>",
            "",
        ]
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


def _scatters(verdict: Verdict) -> list[str]:
    """Draw each run against the baseline, one dot for each user."""
    if verdict.leaderboard.n_users < 2:
        return []
    models = [model for model in verdict.order if model != verdict.baseline]
    base = verdict.baseline
    drawn = [
        _image(
            _noted(verdict, _versus(verdict, model), [model, base]),
            f"{verdict.runs[model].name} and {verdict.runs[base].name}, user by user",
        )
        for model in models[:_SCATTERS]
        if not all(math.isnan(score) for score in verdict.scores[:, model])
    ]
    more = f"; the best {_SCATTERS} of {len(models)} runs" if len(models) > _SCATTERS else ""
    return [
        "<h3>Each run against the baseline</h3>",
        '<p class="caption">One dot for each user, hexagons where there are very many; 99 % '
        f"intervals of each pair alone{more}</p>",
        f'<div class="scatters">{"".join(drawn)}</div>',
    ]


def _versus(verdict: Verdict, model: int) -> Figure:
    """Draw a run against the baseline, user by user."""
    base = verdict.baseline
    return versus_figure(
        verdict.scores[:, model],
        verdict.scores[:, base],
        names=(verdict.runs[model].marked, verdict.runs[base].marked),
        metric=verdict.metric,
        better=verdict.better,
    )


def _table(grid: Grid) -> str:
    head = "".join(
        f"<th{_class('text' if n < grid.text else '')}>{for_html(name)}</th>"
        for n, name in enumerate(grid.headers)
    )
    rows = "".join(_row(grid, number) for number in range(len(grid.rows)))
    # the strata of a table that is coloured are in order, below a row of their sizes
    kind = _class("sortable" if len(grid.rows) > 1 and not grid.below else "")
    return (
        f'<h3 id="{for_html(grid.key)}">{for_html(grid.title)}</h3>'
        f'<p class="caption">{for_html(grid.caption)}.</p>'
        f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(grid: Grid, number: int) -> str:
    cells = []
    for column, cell in enumerate(grid.rows[number]):
        small = grid.below[number][column] if grid.below else ""
        kind = "text" if column < grid.text else ""
        if kind and len(cell) > 40:
            kind = "text wide"
        strength = grid.shade[number][column] if grid.shade else 0.0
        colour = f' style="background:{_tint(strength)}"' if strength else ""
        below = f"<small>{for_html(small)}</small>" if small else ""
        cells.append(f"<td{_class(kind)}{colour}>{for_html(cell)}{below}</td>")
    return f"<tr{_class('bold' if number in grid.bold else '')}>{''.join(cells)}</tr>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _tint(strength: float) -> str:
    """Return a translucent colour: blue in favour, vermilion against, safe for colour blindness."""
    colour = "0 114 178" if strength < 0 else "213 94 0"
    return f"rgb({colour} / {0.6 * min(abs(strength), 1.0) ** 0.7:.3f})"


def _image(figure: Figure, alt: str) -> str:
    """Embed a figure as an SVG image of its own, whose ids cannot clash with others."""
    out = io.BytesIO()
    with house_style():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(out.getvalue()).decode()
    text = for_html(alt)
    return f'<figure><img alt="{text}" src="data:image/svg+xml;base64,{data}"></figure>'


def _title(verdict: Verdict) -> str:
    names = [run.name for run in verdict.paired.every_run]
    listed = " and ".join(names) if len(names) < 3 else f"{len(names)} runs"
    return f"{listed} compared" if len(names) > 1 else listed
