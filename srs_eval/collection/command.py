"""The command: what to do with a collection in ten lines, and a page."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srs_eval.runs.words import REQUIRED, dotted, say


@dataclass
class Collection:
    """What to do with FSRS in an Anki collection: ten lines, and a page.

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
    """Write the page and print the answer."""
    # Heavy: not for --help and for mistakes
    from srs_eval.collection.answer import Answer
    from srs_eval.collection.page import page
    from srs_eval.collection.study import Study
    from srs_eval.runs.folder import whole

    chosen = {"decks": options.decks, "presets": options.presets}
    of_data = dict(dotted(options.data)) | {key: value for key, value in chosen.items() if value}
    place = options.out or Path(f"{options.collection.stem}.html")
    answer = Answer.of(Study.of(options.collection, of_data))
    typed = shlex.join(["python", "-m", "srs_eval.collection", *sys.argv[1:]])
    with whole(place) as partial:
        partial.write_text(page(answer, options.collection.name, typed), encoding="utf-8")
    for line in answer.lines(place):
        say(line)
