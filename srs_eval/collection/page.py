"""The report as one self-contained HTML page, in light and dark, on wide and narrow screens."""

from __future__ import annotations

from collections.abc import Sequence

from srs_eval.collection.pictures import drawn
from srs_eval.collection.section import Paste, Picture, Section, Table
from srs_eval.text.escapes import for_html, html_head

_IS_TEXT = ' class="text"'
_STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --page: #fff; --muted: #57606a;
  --line: #d0d7de; --thin: #eaeef2; --box: #f6f8fa; --blue: #0072b2; --off: #d55e00; }
@media screen and (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --page: #0d1117; --muted: #9198a1; --line: #3d444d;
    --thin: #262c36; --box: #151b23; --blue: #56b4e9; --off: #ff8c42; }
}
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  color: var(--text); background: var(--page); max-width: 1100px; margin: 0 auto;
  padding: 24px 20px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 21px; margin: 44px 0 8px; padding-top: 20px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 22px 0 2px; }
p.answer { font-size: 18px; margin: 8px 0 14px; max-width: 75ch; }
p.facts, p.note, p.caption, footer { color: var(--muted); font-size: 14px; max-width: 90ch; }
p.note, p.caption { margin: 4px 0; }
p, td.text, h3 { overflow-wrap: anywhere; }
td, th { white-space: nowrap; }
td.text, th.text { white-space: normal; min-width: 9em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 14px 5px 0; text-align: right; vertical-align: top; }
th { font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
td { border-bottom: 1px solid var(--thin); }
td.text, th.text { text-align: left; }
.pictures { display: grid; gap: 8px 36px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); }
figure { margin: 0; min-width: 0; }
figcaption { color: var(--muted); font-size: 13px; }
svg { width: 100%; height: auto; display: block; max-width: 560px; }
svg text { fill: var(--text); font-size: 13px; }
svg .axis { fill: var(--muted); font-size: 11.5px; }
svg .grid { stroke: var(--thin); }
svg .range { stroke: var(--blue); stroke-width: 3; stroke-linecap: round; opacity: .55; }
svg .dot { fill: var(--blue); }
svg .mark { stroke: var(--text); stroke-width: 2; }
svg .off .range { stroke: var(--off); } svg .off .dot { fill: var(--off); }
svg .off .mark { stroke: var(--off); } svg .off text { fill: var(--off); font-weight: 650; }
.paste { margin: 14px 0; }
.paste h3 { margin: 0 0 4px; }
code { display: block; font: 13.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace;
  background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px;
  user-select: all; overflow-wrap: anywhere; }
footer { margin-top: 48px; border-top: 1px solid var(--line); padding-top: 12px; }
@media (max-width: 600px) { body { padding: 16px 14px 48px; font-size: 15px; }
  h2 { margin-top: 32px; } p.answer { font-size: 16.5px; } }
@media print { body { max-width: none; } figure, tr, .paste { break-inside: avoid; } }
"""


def page(title: str, facts: str, sections: Sequence[Section], *, command: str) -> str:
    """Format the page: the name of the collection, what was read, and the command line."""
    return "\n".join(
        [
            *html_head(title, _STYLE),
            f"<h1>{for_html(title)}</h1>",
            f'<p class="facts">{text(facts)}</p>',
            *(_section(section) for section in sections),
            f"<footer><p>Made by srs_eval: {for_html(command)}</p></footer></body></html>",
            "",
        ]
    )


def text(words: str) -> str:
    """Escape words, and keep numbers and their percent signs on one line."""
    return for_html(words).replace(" %", "&nbsp;%")


def _section(section: Section) -> str:
    notes = "".join(f'<p class="note">{text(note)}</p>' for note in section.notes)
    pictures = [drawn(part) for part in section.parts if isinstance(part, Picture)]
    grid = f'<div class="pictures">{"".join(pictures)}</div>' if pictures else ""
    rest = "".join(
        _table(part) if isinstance(part, Table) else _paste(part)
        for part in section.parts
        if not isinstance(part, Picture)
    )
    return (
        f"<section><h2>{for_html(section.question)}</h2>"
        f'<p class="answer">{text(section.answer)}</p>{notes}{grid}{rest}</section>'
    )


def _table(table: Table) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{_IS_TEXT if place < table.text else ''}>{text(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in table.rows)
    return (
        f'<h3>{text(table.caption)}</h3><div class="scroll"><table>'
        f"<thead><tr>{row(table.headers, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _paste(paste: Paste) -> str:
    return (
        f'<div class="paste"><h3>{for_html(paste.title)}</h3>'
        f"<code>{for_html(paste.numbers)}</code></div>"
    )
