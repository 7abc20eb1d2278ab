"""What FSRS is worth on an Anki collection: a page, and the same in a few lines.

  python -m srs_eval.collection my.colpkg
  python -m srs_eval.collection my.colpkg decks='Spanish*' out=spanish.html

The file is copied and never changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from srs_eval.commands.cli import Argument, Command, Key, Local, Options
from srs_eval.commands.overrides import values_of
from srs_eval.text.console import say, shell

_WIDTH = 110
_LABEL = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Options):
    """Options of the command."""

    collection: Argument[Path]
    """one collection"""
    out: Local[Path | None] = None
    """the page to write (by default NAME.html in this folder)"""
    decks: str = ""
    """only these decks, as in decks='Spanish*' or decks=[Spanish,French]"""
    presets: str = ""
    """only these presets"""
    data: Annotated[Mapping[str, str], Key("data.KEY")] = field(default_factory=dict)
    """any other argument of data=anki, as in data.rollover_hour=4, or of the table that is named in
    place of a collection
    """

    @property
    def of_data(self) -> dict[str, Any]:
        """The arguments of the data."""
        short = {"decks": self.decks, "presets": self.presets}
        given = {name: value for name, value in short.items() if value}
        return values_of("data", {**self.data, **given})


def report(options: Collection) -> int:
    """Write the page and print the answers."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.collection.report import facts, sections, study_of
    from srs_eval.results.files import write_text
    from srs_eval.text.pages import render

    name = options.collection.name
    place = options.out or Path(f"{options.collection.stem}.html")
    study = study_of(options.collection, options.of_data)
    found = sections(study)
    typed = shell([*command.program.split(), *options.words])
    shown = {"title": name, "facts": facts(study), "sections": found, "command": typed}
    page = render("collection/page.html", **shown)
    write_text(place, page)
    for line in lines(f"{name}: {facts(study)}", found):
        say(line)
    say(f"{'page':<{_LABEL}}{place}")
    return 0


def lines(name: str, found: Sequence[Any]) -> Iterator[str]:
    """Format the first sentence of every answer, and its lines, for a terminal."""
    yield from textwrap.wrap(name, _WIDTH)
    for section in found:
        first, end, _ = section.answer.partition(". ")
        yield _indented(first + end.rstrip(), f"{section.label:<{_LABEL}}")
        for line in section.lines:
            yield _indented(line, f"{'':<{_LABEL}}- ")


def _indented(text: str, label: str) -> str:
    # Numbers stay on the line of their percent signs.
    text, after = text.replace(" %", "\N{NO-BREAK SPACE}%"), " " * len(label)
    return textwrap.fill(text, _WIDTH, initial_indent=label, subsequent_indent=after)


command = Command("python -m srs_eval.collection", __doc__, Collection, report)
