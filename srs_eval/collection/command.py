"""The command line ``python -m srs_eval.collection``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from srs_eval.commands.arguments import Words, about_one, carry_out, explained
from srs_eval.commands.fit import values_of
from srs_eval.text.console import say, shell

PROGRAM = "python -m srs_eval.collection"
KEYS = {
    "out": "the page to write (by default NAME.html in this folder)",
    "decks": "only these decks, as in decks='Spanish*' or decks=[Spanish,French]",
    "presets": "only these presets",
    "published": "results of each user of the public srs-benchmark, a file or a folder, to compare "
    "yours with",
    "data.KEY": "any other argument of data=anki, as in data.rollover_hour=4, or of the table that "
    "is named in place of a collection",
}
_HELP = f"""What FSRS is worth on an Anki collection: a page, and the same in a few lines.

  {PROGRAM} my.colpkg
  {PROGRAM} my.colpkg decks='Spanish*' out=spanish.html

The file is copied and never changed. Options, KEY=VALUE:

{explained(KEYS)}"""
_WIDTH = 110
_LABEL = 12


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _report(about_one(words, KEYS, "collection"), words),
        words,
        program=PROGRAM,
        help_page=_HELP,
    )


def _report(asked: Words, words: Sequence[str]) -> int:
    """Write the page and print the answers; return the exit status."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.collection.report import facts, sections, study_of
    from srs_eval.results.files import whole_file
    from srs_eval.text.pages import render

    path = asked.paths[0]
    place = asked.path("out") or Path(f"{path.stem}.html")
    study = study_of(path, data_options(asked.options))
    found = sections(study, asked.path("published"))
    typed = shell([*PROGRAM.split(), *words])
    place.parent.mkdir(parents=True, exist_ok=True)
    page = render(
        "collection/page.html",
        title=path.name,
        facts=facts(study),
        sections=found,
        command=typed,
    )
    with whole_file(place) as partial:
        partial.write_text(page, encoding="utf-8")
    for line in lines(f"{path.name}: {facts(study)}", found):
        say(line)
    say(f"{'page':<{_LABEL}}{place}")
    return 0


def data_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of the data."""
    short = {f"data.{key}": options[key] for key in ("decks", "presets") if key in options}
    return values_of({**options, **short}, "data")


def lines(name: str, found: Sequence[Any]) -> Iterator[str]:
    """Format the first sentence of each answer for a terminal."""
    yield from textwrap.wrap(name, _WIDTH)
    for section in found:
        first, end, _ = section.answer.partition(". ")
        # Numbers stay on the line of their percent signs.
        answer = (first + end.rstrip()).replace(" %", "\N{NO-BREAK SPACE}%")
        label = f"{section.label:<{_LABEL}}"
        yield textwrap.fill(answer, _WIDTH, initial_indent=label, subsequent_indent=" " * _LABEL)
