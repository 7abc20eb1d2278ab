"""Pictures of values with intervals, as SVG in the colours of the page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from srs_eval.collection.section import Mark, Picture
from srs_eval.collection.words import between, percent
from srs_eval.text.escapes import for_html

_WIDTH, _LEFT, _RIGHT = 475, 225, 24
_ROW, _TOP = 24, 8
_AXIS = 30
_LETTERS = 25
_TICKS = 6


@dataclass(frozen=True, slots=True)
class _Scale:
    """The axis of a picture, in shares of 1."""

    first: float
    last: float
    step: float

    def x(self, value: float) -> float:
        """Return where a value is drawn; beyond the axis, at its end."""
        inside = min(max(value, self.first), self.last)
        share = (inside - self.first) / (self.last - self.first)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    @property
    def ticks(self) -> list[float]:
        """Values with a line."""
        count = round((self.last - self.first) / self.step)
        return [self.first + number * self.step for number in range(count + 1)]


def drawn(picture: Picture) -> str:
    """Draw a picture: a row for each mark, with a dot, its range, and a stroke."""
    scale, bottom = _scale(picture), _TOP + _ROW * len(picture.marks)
    rows = "".join(
        _row(mark, scale, _TOP + _ROW * (place + 0.5)) for place, mark in enumerate(picture.marks)
    )
    spoken = f"{picture.title}: {'; '.join(map(_in_words, picture.marks))}"
    return (
        f"<figure><h3>{for_html(picture.title)}</h3>"
        f'<svg viewBox="0 0 {_WIDTH} {bottom + _AXIS}" role="img" '
        f'aria-label="{for_html(spoken)}">{_grid(scale, bottom)}{rows}</svg>'
        f"<figcaption>Dot: {for_html(picture.value)}. Stroke: {for_html(picture.expected)}."
        "</figcaption></figure>"
    )


def _scale(picture: Picture) -> _Scale:
    """Choose an axis that holds everything, with lines at round numbers."""
    values = [n for m in picture.marks for n in (m.value, m.lo, m.hi, m.expected)]
    known = [value for value in values if not math.isnan(value)]
    low, high = min(known), max(known)
    least = max((high - low) / _TICKS, 1e-4)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= least * 0.999)
    first, last = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return _Scale(first, max(last, first + step), step)


def _grid(scale: _Scale, bottom: float) -> str:
    parts = []
    for tick in scale.ticks:
        x, digits = scale.x(tick), 0 if scale.step >= 0.01 else 2 if scale.step < 0.001 else 1
        last = " %" if tick == scale.ticks[-1] else ""
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text class="axis" x="{x}" y="{bottom + 17}" text-anchor="middle">'
            f"{100 * tick:z.{digits}f}{last}</text>"
        )
    return "".join(parts)


def _row(mark: Mark, scale: _Scale, y: float) -> str:
    count = f" ({mark.reviews:,})" if mark.reviews else ""
    name, most = mark.name, _LETTERS - len(count)
    name = (name if len(name) <= most else f"{name[: most - 1]}…") + count
    dot, stroke = scale.x(mark.value), scale.x(mark.expected)
    known = not math.isnan(mark.lo)
    span = (
        f'<line class="range" x1="{scale.x(mark.lo)}" x2="{scale.x(mark.hi)}" y1="{y}" y2="{y}"/>'
        if known
        else ""
    )
    off = ' class="off"' if mark.stands_out else ""
    return (
        f"<g{off}><title>{for_html(_in_words(mark))}</title>"
        f'<text x="{_LEFT - 12}" y="{y + 4.5}" text-anchor="end">{for_html(name)}</text>'
        f'{span}<circle class="dot" cx="{dot}" cy="{y}" r="4.5"/>'
        f'<line class="mark" x1="{stroke}" x2="{stroke}" y1="{y - 8}" y2="{y + 8}"/></g>'
    )


def _in_words(mark: Mark) -> str:
    return (
        f"{mark.name}: {percent(mark.value)}"
        + (f" ({between(mark.lo, mark.hi)})" if not math.isnan(mark.lo) else "")
        + f" against {percent(mark.expected)}"
    )
