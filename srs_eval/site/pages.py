"""A static site of boards: it works from a folder and from any server, and fetches nothing else.

Addresses are stable: BOARD/index.html, BOARD/compare.html, BOARD/models/NAME.html, and below
BOARD/raw the scores. What is shown is in the fragment of the address, so that every view has one.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from srs_eval.errors import ConfigError
from srs_eval.nouns.when import IN_WORDS
from srs_eval.site.data import write_means, write_pairs, write_scripts, write_submission
from srs_eval.site.folder import whole_site
from srs_eval.site.view import MEANINGS, Model, View, view
from srs_eval.submit.registrations import Registration
from srs_eval.submit.submission import Board
from srs_eval.text.pages import PAGE_STYLE, SORT_SCRIPT, render

_ASSETS = "assets"
_OWN_FILES = Path(__file__).with_name(_ASSETS)


def write_site(
    boards: Sequence[Board],
    out: Path,
    *,
    title: str = "Leaderboards",
    registered: Sequence[Registration] = (),
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Write the site of some boards into a folder, whole or not at all.

    `out` is new, empty, or a site, which is replaced. `title` is the heading of the first page,
    `registered` has the pre-registrations of the leaderboard, and `progress` is called after each
    submission.
    """
    scored = [board for board in boards if any(one.run.rows for one in board.submissions)]
    if not scored:
        raise ConfigError("there are no submissions with scores to show")
    with whole_site(out) as folder:
        (folder / _ASSETS).mkdir()
        for file in (*_OWN_FILES.iterdir(), PAGE_STYLE, SORT_SCRIPT):
            shutil.copyfile(file, folder / _ASSETS / file.name)
        shown = [view(board, registered) for board in scored]
        for each in shown:
            _write_board(each, shown, folder / each.board.name, title, progress)
        _write(
            folder / "index.html",
            title=title,
            root=".",
            groups=_groups(shown),
            in_words=IN_WORDS,
            elsewhere=[r for r in registered if not any(r in each.registered for each in shown)],
        )


def _write(path: Path, template: str = "index", **values: Any) -> None:
    path.write_text(render(f"site/{template}.html", **values), encoding="utf-8")


def _groups(shown: Sequence[View]) -> dict[str, list[View]]:
    """Return the boards of each protocol on its data, the newest version first."""
    groups: dict[str, list[View]] = {}
    for each in sorted(shown, key=lambda each: (each.board.protocol, each.board.data)):
        groups.setdefault(f"{each.board.protocol} on {each.board.data}", []).append(each)
    for views in groups.values():
        views.sort(key=lambda each: each.board.name)
        views.sort(key=_versions, reverse=True)
    return groups


def _versions(shown: View) -> tuple[list[tuple[int, int, str]], ...]:
    return by_version(shown.board.protocol_version), by_version(shown.board.data_version)


def by_version(version: str) -> list[tuple[int, int, str]]:
    """Return the key that sorts versions: numbers by size, and before words."""
    parts = re.split(r"(\d+)", version)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def _write_board(
    shown: View, every: Sequence[View], folder: Path, site: str, progress: Callable[[], object]
) -> None:
    for each in (folder, folder / "models", folder / "raw"):
        each.mkdir()
    write_scripts(shown, folder)
    write_means(shown, folder)
    kind = shown.board.protocol, shown.board.data
    _write(
        folder / "index.html",
        "board",
        title=shown.title,
        root="..",
        crumbs=[(site, "../index.html")],
        shown=shown,
        others=[
            each
            for each in every
            if each is not shown and (each.board.protocol, each.board.data) == kind
        ],
        marks={mark: mark for mark in MEANINGS},
        explained={**MEANINGS, **dict(trait for model in shown.models for trait in model.traits)},
    )
    crumbs = [(site, "../index.html"), (shown.title, "index.html")]
    _write(
        folder / "compare.html", "compare", title="Two models compared", root="..", crumbs=crumbs
    )
    crumbs = [(name, f"../{address}") for name, address in crumbs]
    for model in shown.models:
        write_pairs(model, shown, folder)
        write_submission(model, folder / "raw")
        _write(
            folder / "models" / f"{model.submission.name}.html",
            "model",
            title=model.title,
            root="../..",
            crumbs=crumbs,
            shown=shown,
            model=model,
            **_stated(model, shown),
        )
        progress()


def _stated(model: Model, shown: View) -> dict[str, Any]:
    """Return what the page of a model shows beside its scores."""
    about, run, board = model.submission.about, model.run, shown.board
    texts = {
        "authors": ", ".join(map(str, about.get("authors") or ())),
        "licence": about.get("licence"),
        "predicted": IN_WORDS[run.when],
        "fitted parameters per user": about.get("parameters"),
        "seconds per user": about.get("seconds_per_user"),
        "hardware": about.get("hardware"),
        "constants chosen on": about.get("tuned_on"),
        "pretrained on": (about.get("pretrained_on") or {}).get("description"),
        "fits": run.facts.fit_counts.in_words or "as planned",
        "protocol": f"{board.protocol} {board.protocol_version}",
        "data": f"{board.data} {board.data_version}",
        "seed": about.get("seed"),
        "srs_eval": about.get("srs_eval"),
    }
    options = {key: about[key] for key in ("algorithm", "protocol", "data") if about.get(key)}
    return {
        "marks": MEANINGS,
        "description": _text(about.get("description")),
        "twin": shown.named(model.twin),
        "code": about.get("code") or {},
        "stated": {name: _text(value) for name, value in texts.items()},
        "options": yaml.safe_dump(options, sort_keys=False).splitlines() if options else [],
        "registered": [each for each in shown.registered if each.model == model.submission.name],
    }


def _text(value: Any) -> str:
    """Format a value in a line; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(each)}".strip() for key, each in value.items() if each)
    return value if isinstance(value, str) else json.dumps(value, default=str)
