"""How results look in a terminal and in a notebook: small, and readable in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from srs_eval.metrics.headline import FEWEST, shown_metrics
from srs_eval.metrics.panel import full_panel
from srs_eval.metrics.summary import MetricSummary
from srs_eval.text.console import interval
from srs_eval.text.pages import render
from srs_eval.text.table import Table


def metrics_table(metrics: Mapping[str, MetricSummary], over: str) -> Table:
    """Tabulate the metrics that the command shows too.

    `over` is what intervals are over, such as ``users``.
    """
    mean = "mean over users" if over == "users" else "score"
    known = shown_metrics(metric for metric in full_panel() if metric.name in metrics)
    rows = []
    for name in [metric.name for metric in known] or list(metrics)[:FEWEST]:
        row, floor = metrics[name], metrics.get(f"{name}_floor")
        by_chance = "" if floor is None else floor.mean_users
        rows.append([name, row.mean_users, interval(row.lo, row.hi), by_chance])
    return Table(["metric", mean, f"99 % over {over}", "by chance"], rows)


def as_text(title: str, notes: Sequence[str], table: Table) -> str:
    """Write a title, notes and a table as lines of text."""
    return "\n".join([title, *notes, *(["", table.write()] if table.rows else [])])


def as_html(title: str, notes: Sequence[str], table: Table) -> str:
    """Write a title, notes and a table as HTML that takes the colours of the page."""
    return render("api/show.html", title=title, notes=notes, table=table)
