"""A static site of boards: it works from a folder and from any server, and fetches nothing else.

Addresses are stable: BOARD/index.html, BOARD/compare.html, BOARD/models/NAME.html, and below
BOARD/raw the scores. What is shown is in the fragment of the address, so that every view has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.nouns.when import IN_WORDS
from srs_eval.site.folder import copy_files, whole_site
from srs_eval.site.frame import (
    ASSETS,
    by_version,
    controls,
    link,
    page,
    path_of,
    select,
)
from srs_eval.site.hypotheses import elsewhere, hypotheses
from srs_eval.site.model_page import model_page
from srs_eval.site.raw import write_means, write_submission
from srs_eval.site.scripts import MEANINGS, traits_of, write_scripts
from srs_eval.site.view import View, view
from srs_eval.submit.registrations import Registration
from srs_eval.submit.submission import Board
from srs_eval.text.console import counted
from srs_eval.text.escapes import for_html, html_table
from srs_eval.text.pages import PAGE_STYLE, SORT_SCRIPT

_OWN_FILES = Path(__file__).with_name(ASSETS)
_GROUPS = (
    "Groups: no two models that share a letter are significantly different (paired differences of "
    "neighbours of the same time, Holm's method over all pairs)."
)
_NOT_RECOMPUTED = (
    "†: scores by this metric cannot be recomputed from the sums that a submission has of each "
    "user's reviews. They are what its author states, within bounds, unless the model is verified "
    "or its predictions were submitted."
)
_DIFFERENCES = (
    "Differences are paired, user by user. Interval and verdict are adjusted for the number of "
    "comparisons: by the place behind the best model, which is selected on the same scores, or by "
    "Holm's method against a chosen baseline; so are the p-values; 1 % significance level. "
    "Highlighted: the best, and "
    "models that are not significantly different."
)


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
    if not any(one.run.rows for board in boards for one in board.submissions):
        raise ConfigError("there are no submissions with scores to show")
    with whole_site(out) as folder:
        files = [*sorted(_OWN_FILES.iterdir()), PAGE_STYLE, SORT_SCRIPT]
        copy_files(files, folder / ASSETS)
        shown = [
            view(board, registered)
            for board in boards
            if any(one.run.rows for one in board.submissions)
        ]
        for each in shown:
            _write_board(each, shown, folder / each.board.name, title, progress)
        _write(folder / "index.html", page(title, _index(shown, registered), root="."))


def _write_board(
    shown: View, others: Sequence[View], folder: Path, site: str, progress: Callable[[], object]
) -> None:
    for each in (folder, folder / "models", folder / "raw"):
        each.mkdir()
    write_scripts(shown, folder)
    write_means(shown, folder)
    name, above = board_title(shown), (site, "../index.html")
    body = _board(shown, [other for other in others if other is not shown])
    text = page(name, body, root="..", crumbs=[above], script="board.js")
    _write(folder / "index.html", text)
    crumbs = [above, (name, "index.html")]
    title = "Two models compared"
    text = page(title, _comparison(), root="..", crumbs=crumbs, script="compare.js")
    _write(folder / "compare.html", text)
    crumbs = [(site, "../../index.html"), (name, "../index.html")]
    for model in shown.models:
        write_submission(model, folder / "raw")
        text = model_page(model, shown, crumbs)
        _write(folder / "models" / f"{model.submission.name}.html", text)
        progress()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def board_title(shown: View) -> str:
    """Return the name of a board for people, unlike that of any other board."""
    board = shown.board
    versions = f"{board.protocol} {board.protocol_version} on {board.data} {board.data_version}"
    return f"{versions}, {_which(shown)}"


def _which(shown: View) -> str:
    """Return what distinguishes boards of the same versions: their users, and their options."""
    count, digest = len(shown.paired.users), shown.board.fingerprint[:8]
    return counted(count, "user") + f" ({digest})" * bool(digest)


def _index(shown: Sequence[View], registered: Sequence[Registration]) -> Iterator[str]:
    yield (
        '<p class="facts">Memory models of spaced repetition, compared on the same reviews of the '
        "same users. A board belongs to one version of a protocol and of its data, and is never "
        "rewritten: another version is a board of its own.</p>"
    )
    groups: dict[tuple[str, str], list[View]] = {}
    for each in shown:
        groups.setdefault((each.board.protocol, each.board.data), []).append(each)
    for (protocol, data), views in sorted(groups.items()):
        views.sort(key=lambda each: each.board.name)
        views.sort(key=_versions, reverse=True)
        yield f'<section class="boards"><h2>{for_html(f"{protocol} on {data}")}</h2>'
        rows = [row for each in views for row in _rows_of_index(each)]
        headers = ("board", "predicted", "best by mean", "models", "reviews", "score")
        yield html_table(headers, rows, text=3) + "</section>"
    yield elsewhere(
        [one for one in registered if not any(one in each.registered for each in shown)]
    )


def _versions(shown: View) -> tuple[list[tuple[int, int, str]], ...]:
    return by_version(shown.board.protocol_version), by_version(shown.board.data_version)


def _rows_of_index(shown: View) -> Iterator[list[str]]:
    """Yield a row for each time of prediction, with the best eligible model."""
    board = shown.board
    address = f"{path_of(board.name)}/index.html"
    metric, means = next(iter(shown.means.items()))
    values = means.values["users"][:, 0]
    sign = -1 if means.better == "higher" else 1
    for n, when in enumerate(shown.times):
        models = [model for model in shown.models if model.run.when == when]
        best, score = "", ""
        eligible = [m for m in models if m.run.is_eligible and not np.isnan(values[m.column])]
        if eligible:
            first = min(eligible, key=lambda model: sign * values[model.column])
            name = f"{path_of(board.name)}/models/{path_of(first.submission.name)}.html"
            best, score = link(first.title, name), f"{metric} {values[first.column]:.4f}"
        version = f"version {board.protocol_version}, data {board.data_version}, {_which(shown)}"
        yield [
            link(version, address) if n == 0 else "",
            for_html(IN_WORDS[when]),
            best,
            f"{len(models):,}",
            f"{int(shown.paired.reviews.sum()):,}" if n == 0 else "",
            for_html(score),
        ]


def _board(shown: View, others: Sequence[View]) -> Iterator[str]:
    board = shown.board
    yield (
        f'<p class="facts">{counted(len(shown.models), "model")}, '
        f'{counted(len(shown.paired.users), "user")}, '
        f'{counted(int(shown.paired.reviews.sum()), "scored review")}'
        + (f"; fingerprint of the data <code>{for_html(board.fingerprint[:16])}</code>"
           if board.fingerprint else "")
        + "</p>"
    )  # fmt: skip
    kin = [
        each
        for each in others
        if (each.board.protocol, each.board.data) == (board.protocol, board.data)
    ]
    if kin:
        links = ", ".join(
            link(board_title(each), f"../{path_of(each.board.name)}/index.html") for each in kin
        )
        yield f'<p class="facts">Other boards: {links}</p>'
    yield controls(
        select("difference to", "baseline", {"": "the best of each time"}, models=True),
        '<label>search<input type="search" data-state="q" placeholder="model, author"></label>',
        select("mark", "mark", {"": "all marks", **{mark: mark for mark in MEANINGS}}),
        select("family", "family", {"": "all families"}),
        select(
            "pretrained", "pretrained", {"": "all", "only": "pretrained only", "without": "without"}
        ),
    )
    yield '<div id="tables"></div><section><h2>Accuracy and cost</h2>'
    axes = {"seconds": "seconds per user", "parameters": "fitted parameters"}
    yield f'<div class="controls">{select("cost", "x", axes)}</div>'
    yield '<div id="pareto" class="figures"></div>'
    yield (
        '<p class="caption">The line joins the eligible models that no other one beats in both. '
        "A triangle is a model that is too far off to be drawn in its place, and not on the line. "
        "Seconds are as each author measured them.</p></section>"
    )
    yield hypotheses(shown.registered, shown)
    yield f"<section><h2>Notes</h2><ul class='notes'>{_notes(shown)}</ul></section>"
    yield (
        "<section><h2>Raw data</h2><p>Means: "
        f"{link('board.csv', 'board.csv')}, {link('board.parquet', 'board.parquet')}. "
        f'<a id="compare" href="compare.html">Two models compared</a>.</p>{_raw(shown)}</section>'
    )


def _notes(shown: View) -> str:
    words = {**MEANINGS, **dict(badge for model in shown.models for badge in traits_of(model))}
    explained = [f"{word}: {meaning}" for word, meaning in words.items()]
    notes = (*shown.notes, _DIFFERENCES, _GROUPS, _NOT_RECOMPUTED, *explained)
    return "".join(f"<li>{for_html(note)}</li>" for note in notes)


def _raw(shown: View) -> str:
    rows = [
        [
            link(model.title, f"models/{path_of(model.submission.name)}.html"),
            link("csv", f"raw/{path_of(model.submission.name)}.csv"),
            link("parquet", f"raw/{path_of(model.submission.name)}.parquet"),
            link("yaml", f"raw/{path_of(model.submission.name)}.yaml"),
        ]
        for model in shown.models
    ]
    listed = html_table(("model", "", "", ""), rows, text=4)
    return f"<details><summary>Scores of each user</summary>{listed}</details>"


def _comparison() -> Iterator[str]:
    yield controls(
        select("model", "a", {}, models=True),
        select("less", "b", {}, models=True),
        '<button type="button" id="swap">swap</button>',
    )
    yield '<div id="comparison"></div>'
