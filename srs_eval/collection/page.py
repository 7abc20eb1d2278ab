"""The report as one self-contained HTML page, in light and dark, on wide and narrow screens."""

from __future__ import annotations

from collections.abc import Sequence

from srs_eval.collection.pictures import drawn
from srs_eval.collection.section import Paste, Picture, Section, Table
from srs_eval.text.escapes import for_html, html_head, html_table
from srs_eval.text.pages import PAGE_STYLE

# Beside the style that all pages share.
_STYLE = """
* { box-sizing: border-box; }
body { font-size: 16px; max-width: 1100px; }
h1, h3, p, td.text { overflow-wrap: anywhere; }
p.answer { font-size: 18px; margin: 8px 0 14px; max-width: 75ch; }
p.note { color: var(--muted); font-size: 14px; margin: 4px 0; max-width: 90ch; }
td.text, th.text { white-space: normal; min-width: 9em; }
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
  background: var(--bold); border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px;
  user-select: all; overflow-wrap: anywhere; }
@media (max-width: 600px) { body { padding: 16px 14px 48px; font-size: 15px; }
  h2 { margin-top: 32px; } p.answer { font-size: 16.5px; } }
@media print { .paste { break-inside: avoid; } }
"""


def page(title: str, facts: str, sections: Sequence[Section], *, command: str) -> str:
    """Format the page: the name of the collection, what was read, and the command line."""
    return "\n".join(
        [
            *html_head(title, PAGE_STYLE.read_text(encoding="utf-8") + _STYLE),
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
    headers, *rows = ([text(cell) for cell in row] for row in (table.headers, *table.rows))
    return f"<h3>{text(table.caption)}</h3>{html_table(headers, rows, text=table.text)}"


def _paste(paste: Paste) -> str:
    return (
        f'<div class="paste"><h3>{for_html(paste.title)}</h3>'
        f"<code>{for_html(paste.numbers)}</code></div>"
    )
