"""The command: a page, and the same in a few lines."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srs_eval.comparison.words import one_line
from srs_eval.runs.console import say
from srs_eval.runs.words import REQUIRED, dotted

_WIDTH = 110
_LABEL = 12


@dataclass
class Collection:
    """What FSRS is worth on an Anki collection: a page, and the same in a few lines.

      python -m srs_eval.collection my.colpkg
      python -m srs_eval.collection my.colpkg decks='Spanish*' out=spanish.html

    out=FILE           the page to write (NAME.html in this folder)
    decks=NAME         only these decks, as in decks='Spanish*' or decks=[Spanish,French]
    presets=NAME       only these presets
    data.KEY=VALUE     any other argument of data=anki, as in data.rollover_hour=4, or of the table
                       that is named in place of a collection

    The file is copied and never changed.
    """

    collection: Path = REQUIRED
    out: Path | None = None
    decks: Any = None
    presets: Any = None
    data: dict[str, Any] = field(default_factory=dict)


def report(options: Collection) -> None:
    """Write the page and print the answers."""
    # Heavy: not for --help and for mistakes
    from srs_eval.collection.report import facts, sections, study_of
    from srs_eval.comparison.page import render
    from srs_eval.runs.folder import whole

    chosen = {"decks": options.decks, "presets": options.presets}
    of_data = dict(dotted(options.data)) | {key: value for key, value in chosen.items() if value}
    name = options.collection.name
    place = options.out or Path(f"{options.collection.stem}.html")
    study = study_of(options.collection, of_data)
    found = sections(study)
    typed = shlex.join(["python", "-m", "srs_eval.collection", *sys.argv[1:]])
    shown = {"title": name, "facts": facts(study), "sections": found, "command": typed}
    page = render("collection/page.html", **shown)
    with whole(place) as partial:
        partial.write_text(page, encoding="utf-8")
    for line in lines(f"{name}: {facts(study)}", found):
        say(line)
    say(f"{'page':<{_LABEL}}{place}")


def lines(name: str, found: Sequence[Any]) -> Iterator[str]:
    """Format the first sentence of every answer, and its lines, for a terminal."""
    yield from textwrap.wrap(one_line(name), _WIDTH)
    for section in found:
        first, end, _ = section.answer.partition(". ")
        yield _indented(first + end.rstrip(), f"{section.label:<{_LABEL}}")
        for line in section.lines:
            yield _indented(line, f"{'':<{_LABEL}}- ")


def _indented(text: str, label: str) -> str:
    # Numbers stay on the line of their percent signs.
    text, after = one_line(text).replace(" %", "\N{NO-BREAK SPACE}%"), " " * len(label)
    return textwrap.fill(text, _WIDTH, initial_indent=label, subsequent_indent=after)
