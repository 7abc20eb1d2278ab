"""The page of a model: what its author states, its files, and its history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from srs_eval.nouns.when import IN_WORDS
from srs_eval.site.frame import controls, described, link, page, path_of, select, web_link
from srs_eval.site.hypotheses import hypotheses
from srs_eval.site.scripts import MEANINGS, badges
from srs_eval.site.view import Model, View
from srs_eval.text.escapes import for_html, html_table
from srs_eval.text.plain import printable


def model_page(model: Model, shown: View, crumbs: Sequence[tuple[str, str]]) -> str:
    """Format the page; its charts are drawn by its script."""
    return page(
        model.title,
        _body(model, shown),
        root="../..",
        crumbs=crumbs,
        script="model.js",
        board="..",
        model=model.submission.name,
    )


def _body(model: Model, shown: View) -> Iterator[str]:
    one = model.submission
    about = one.about
    marks = [(one.mark, MEANINGS[one.mark]), *badges(model, shown)]
    yield "<p>" + " ".join(_badge(text, meaning) for text, meaning in marks) + "</p>"
    yield f'<p class="lead">{for_html(_text(about.get("description")))}</p>'
    twin = next((m for m in shown.models if m.submission.name == model.twin), None)
    if twin is not None:
        yield f'<p class="note">It has the scores of {for_html(twin.title)}: both count as one.</p>'
    yield controls(select("against", "baseline", {}, models=True))
    yield '<div id="scores"></div><section><h2>What its author states</h2>'
    yield described(_stated(model, shown)) + "</section>"
    options = {key: about[key] for key in ("algorithm", "protocol", "data") if about.get(key)}
    if options:
        yield f"<section><h2>Options</h2><pre>{_block(options)}</pre></section>"
    own = [each for each in shown.registered if each.model == one.name]
    yield hypotheses(own, shown, models=".")
    yield f"<section><h2>History</h2>{_history(model)}</section>"
    raw = f"../raw/{path_of(one.name)}"
    links = ", ".join(link(kind, f"{raw}.{kind}") for kind in ("csv", "parquet", "yaml"))
    yield f"<section><h2>Raw data</h2><p>Scores of each user: {links}</p></section>"


def _badge(text: str, meaning: str) -> str:
    kind = text if text in MEANINGS else ""
    return f'<span class="badge {kind}" title="{for_html(meaning)}">{for_html(text)}</span>'


def _stated(model: Model, shown: View) -> dict[str, str]:
    about, run, board = model.submission.about, model.run, shown.board
    pretrained = about.get("pretrained_on")
    described_as = pretrained.get("description") if isinstance(pretrained, Mapping) else pretrained
    texts = {
        "authors": ", ".join(map(str, about.get("authors") or ())),
        "licence": about.get("licence"),
        "predicted": IN_WORDS[run.when],
        "fitted parameters per user": about.get("parameters"),
        "seconds per user": about.get("seconds_per_user"),
        "hardware": _text(about.get("hardware")),
        "constants chosen on": about.get("tuned_on"),
        "pretrained on": described_as,
        "fits": run.fits.in_words or "as planned",
        "protocol": f"{board.protocol} {board.protocol_version}",
        "data": f"{board.data} {board.data_version}",
        "seed": about.get("seed"),
        "srs_eval": about.get("srs_eval"),
    }
    stated = {name: for_html(_text(value)) for name, value in texts.items()}
    return {"code": _code(about.get("code")), **stated}


def _code(code: Any) -> str:
    if not isinstance(code, Mapping):
        return for_html(_text(code))
    url, commit = (_text(code.get(key)) for key in ("url", "commit"))
    return web_link(url) + (f" at <code>{for_html(commit)}</code>" if commit else "")


def _text(value: Any) -> str:
    """Format a value in a line; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(each)}".strip() for key, each in value.items() if each)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _block(value: Any) -> str:
    """Format a value as YAML, in several lines."""
    text = value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False)
    lines = printable(text).splitlines()
    return "\n".join(map(for_html, lines))


def _history(model: Model) -> str:
    history = model.submission.history
    if not history:
        return "<p>No version is on the maintainers' record yet.</p>"
    rows = [
        [
            for_html(version.date),
            _badge(version.mark, MEANINGS[version.mark]),
            f"<code>{for_html(version.digest[:16])}</code>",
            for_html(version.note),
        ]
        for version in reversed(history)
    ]
    return html_table(("accepted", "mark", "digest of the results", "note"), rows, text=4)
