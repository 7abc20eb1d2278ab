"""How results look in a terminal and in a notebook: small, and readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from srs_eval.metrics.headline import FEWEST, shown_metrics
from srs_eval.metrics.panel import full_panel
from srs_eval.metrics.summary import MetricSummary
from srs_eval.text.console import interval, number, table
from srs_eval.text.escapes import for_html

_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit"
_CELL = "padding:.15em .8em .15em 0;border:0;background:none;color:inherit"
_LINE = "border-bottom:1px solid rgba(128,128,128,.5)"


def metric_rows(
    metrics: Mapping[str, MetricSummary], over: str
) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table of the metrics that the command shows too.

    `over` is what intervals are over, such as ``users``.
    """
    mean = "mean over users" if over == "users" else "score"
    known = shown_metrics(metric for metric in full_panel() if metric.name in metrics)
    rows = []
    for name in [metric.name for metric in known] or list(metrics)[:FEWEST]:
        row, floor = metrics[name], metrics.get(f"{name}_floor")
        by_chance = "" if floor is None else number(floor.mean_users)
        rows.append([name, number(row.mean_users), interval(row.lo, row.hi), by_chance])
    return ["metric", mean, f"99 % over {over}", "by chance"], rows


def as_text(
    title: str, notes: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Write a title, notes and a table as lines of text."""
    lines = [title, *notes]
    if rows:
        lines += ["", table(rows, header)]
    return "\n".join(lines)


def as_html(
    title: str, notes: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Write a title, notes and a table as HTML that takes the colours of the page."""
    parts = [f"<strong>{for_html(title)}</strong>"]
    parts += [f'<div style="opacity:.8">{for_html(note)}</div>' for note in notes]
    if rows:
        parts.append(
            f'<table style="{_TABLE}"><thead>{_row(header, "th", _LINE)}</thead>'
            f"<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"
        )
    return f'<div style="overflow-x:auto">{"".join(parts)}</div>'


def short(value: object) -> str:
    """Write a value of a cell."""
    if isinstance(value, float):
        return "" if math.isnan(value) else number(value)
    return "" if value is None else str(value)


def _row(cells: Sequence[str], tag: str, style: str = "") -> str:
    made = [
        f'<{tag} style="{_CELL};text-align:{"right" if place else "left"};{style}">'
        f"{for_html(cell)}</{tag}>"
        for place, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(made)}</tr>"
