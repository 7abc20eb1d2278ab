"""What a study says and draws: sentences from its template found.jinja, and panels of figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from evaluations import Change
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from srs_eval.plots.style import house_style, new_figure, style_axes
from srs_eval.run.study import Findings

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=False
)


def findings(
    name: str,
    tables: Mapping[str, pd.DataFrame],
    figures: Mapping[str, Figure],
    words: Mapping[str, Any],
    **others: Any,
) -> Findings:
    """Return what a study has found, whose words its template NAME/found.jinja makes.

    Before the first item of its list, the template gives the answer; the items are what was
    learned. Line breaks within them do not matter. Tables may hold differences.
    """
    text = _TEMPLATES.get_template(f"{name}/found.jinja").render(words)
    answer, *learned = (" ".join(part.split()) for part in re.split(r"^- ", text, flags=re.M))
    shown = {key: table.map(_plain) for key, table in tables.items()}
    return Findings(answer, learned, shown, figures, **others)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Change) else value


def each(rows: pd.DataFrame | Iterable[Mapping[str, Any]], form: str, between: str = ", ") -> str:
    """Format rows, in which the form names columns, and join them."""
    records = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
    return between.join(form.format(**record) for record in records)


def enumerated(names: Sequence[str]) -> str:
    """Join names by commas, and the last by *and*."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


_TEMPLATES.filters.update(f=lambda value, form: format(value, form), each=each, enum=enumerated)


@contextmanager
def panels(
    width: float, height: float, columns: int = 1, title: str = "", rows: int = 1, **options: Any
) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    """Draw into axes in the house style, row by row, below a title."""
    with house_style():
        figure = new_figure(width, height)
        every = figure.subplots(rows, columns, squeeze=False, **options).ravel()
        yield figure, every
        for axes in every:
            if axes in figure.axes:  # the study may have removed it
                style_axes(axes)
        if title:
            figure.suptitle(title, x=0.01, ha="left")


def ticks_on_log_scale(axes: Axes, values: Sequence[float], form: str = "{:,}") -> None:
    """Mark values on a logarithmic axis of x, and nothing between them."""
    axes.set_xscale("log")
    axes.set_xticks(values, [form.format(value) for value in values])
    axes.minorticks_off()
