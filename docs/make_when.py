"""Draw docs/images/when.svg: what predictions made at different times may rest on.

python docs/make_when.py
"""

from __future__ import annotations

from pathlib import Path

from srs_eval.algorithms.algorithm import WHEN

PICTURE = Path(__file__).parent / "images" / "when.svg"
_WIDTH, _HEIGHT, _LEFT = 760, 262, 150
_CARD, _OTHERS, _FIRST, _ROW = 62, 98, 140, 34
# Times of the picture: the first test row, the card's reviews, midnight, and the predicted review.
_BEGIN, _CARD_REVIEWS, _MIDNIGHT, _REVIEW = 300, (178, 262, 392), 590, 700
# Reviews of other cards, in sessions.
_SESSIONS = ((168, 5), (250, 4), (330, 4), (380, 5), (462, 6), (536, 4), (616, 6))
_UNTIL = dict(zip(WHEN, (_CARD_REVIEWS[-1], _MIDNIGHT, _REVIEW), strict=True))
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .small { font-size: 12px; fill: #59636e }
  .day { fill: #eaeef2 } .axis { stroke: #d0d7de } .edge { stroke: #59636e; stroke-dasharray: 4 3 }
  .card { fill: #0969da; stroke: #0969da } .asked { fill: none; stroke: #0969da; stroke-width: 2 }
  .other { fill: #818b98 } .fit { fill: #818b98; opacity: .35 } .known { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .small { fill: #9198a1 }
    .day { fill: #1c232c } .axis { stroke: #3d444d } .edge { stroke: #9198a1 }
    .card { fill: #4493f8; stroke: #4493f8 } .asked { stroke: #4493f8 }
    .other { fill: #9198a1 } .known { fill: #4493f8 }
  }"""


def drawn() -> str:
    """Return the picture as SVG."""
    bottom = _FIRST + len(WHEN) * _ROW
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" role="img" aria-label="When a prediction is made">\n'
        f"<style>{_STYLE}\n</style>",
        f'<rect class="day" x="{_MIDNIGHT}" y="26" width="{_WIDTH - _MIDNIGHT}" '
        f'height="{bottom - 26}"/>',
        _text(_MIDNIGHT + 8, 20, "the day of the review", "small"),
        _text(_LEFT + 4, 20, "training rows of the fold", "small"),
        _text(_BEGIN + 8, 20, "test rows", "small"),
        f'<path class="edge" d="M{_BEGIN} 8 V{bottom}"/>',
        _text(4, _CARD + 5, "the card"),
        _text(4, _OTHERS + 5, "other cards"),
        *(f'<path class="axis" d="M{_LEFT} {y} H{_WIDTH - 6}"/>' for y in (_CARD, _OTHERS)),
        *(f'<circle class="card" cx="{x}" cy="{_CARD}" r="5"/>' for x in _CARD_REVIEWS),
        f'<circle class="asked" cx="{_REVIEW}" cy="{_CARD}" r="6"/>',
        _text(_CARD_REVIEWS[-1] - 46, _CARD - 12, "previous review", "small"),
        _text(_REVIEW - 52, _CARD - 12, "predicted review", "small"),
        *(
            f'<circle class="other" cx="{begin + 8 * nth}" cy="{_OTHERS}" r="3"/>'
            for begin, reviews in _SESSIONS
            for nth in range(reviews)
        ),
    ]
    for row, (when, until) in enumerate(_UNTIL.items()):
        y = _FIRST + row * _ROW
        shapes += [
            _text(4, y + 13, when),
            f'<rect class="fit" x="{_LEFT}" y="{y}" width="{_BEGIN - _LEFT}" height="18"/>',
            f'<rect class="known" x="{_BEGIN}" y="{y}" width="{until - _BEGIN}" height="18"/>',
        ]
    below = (
        "grey: what parameters are fitted to. blue: further reviews of other cards that the "
        "prediction may rest on"
    )
    return "\n".join([*shapes, _text(4, bottom + 14, below, "small"), "</svg>\n"])


def _text(x: int, y: int, text: str, kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text{styled} x="{x}" y="{y}">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
