"""The data of a board as scripts, which a page can load from a folder as well as from a server.

Browsers refuse to fetch other files where the page comes from a folder.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.comparison.verdict import BESIDE
from srs_eval.nouns.when import IN_WORDS
from srs_eval.site.standings import boards_of, of_model, standings
from srs_eval.site.view import MEANINGS, Model, View
from srs_eval.text.plain import one_line


def write_scripts(shown: View, folder: Path) -> None:
    """Write a board, and for each metric its tables, and the scores of users."""
    _write(folder, "board", _board(shown))
    for metric, verdict in shown.verdicts.items():
        _write(folder, f"standings/{metric}", standings(verdict))
        # for scatter plots; exact
        values = np.ascontiguousarray(verdict.every_score.T, "<f8")
        _write(folder, f"scores/{metric}", base64.b64encode(values.tobytes()).decode())


def write_pairs(model: Model, shown: View, folder: Path) -> None:
    """Write the differences of a model to all others, for each metric."""
    for metric, verdict in shown.verdicts.items() if not model.twin else ():
        _write(folder, f"pairs/{metric}/{model.column}", of_model(verdict, model.column))


def _write(folder: Path, key: str, content: Any) -> None:
    """Write one script; "<" is escaped, so that no text can end a script or begin a tag."""
    text = json.dumps(_plain(content), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c")
    file = folder / f"{key}.js"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'data.receive("{key}",{text});\n', encoding="ascii")


def _plain(content: Any) -> Any:
    """Return what JSON can hold: numbers as far as pages round them, and no control characters."""
    if isinstance(content, Mapping):
        return {one_line(str(key)): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, float):
        return float(f"{content:.10g}") if math.isfinite(content) else None
    return one_line(content) if isinstance(content, str) else content


def _board(shown: View) -> dict[str, Any]:
    return {
        "n_users": shown.users,
        "times": [[when, IN_WORDS[when]] for when in shown.times],
        "meanings": MEANINGS,
        "metrics": [
            {
                "name": name,
                "better": verdict.better,
                "default": name in BESIDE,
                "means": {name: each.mean.tolist() for name, each in boards_of(verdict).items()},
            }
            for name, verdict in shown.verdicts.items()
        ],
        "models": [_facts(model, shown) for model in shown.models],
    }


def _facts(model: Model, shown: View) -> dict[str, Any]:
    """Return what tables show of a model beside its scores."""
    one, run = model.submission, model.run
    twin = shown.named(model.twin)
    return {
        "id": one.name,
        "title": model.title,
        "mark": one.mark,
        "when": run.when,
        "column": model.column,
        "twin": twin.title if twin else "",
        "eligible": run.is_eligible,
        "pretrained": "pretrained" in run.traits,
        "family": model.family,
        "authors": [str(author) for author in one.about.get("authors") or ()],
        "parameters": model.number("parameters"),
        "seconds": model.number("seconds_per_user"),
        "badges": model.badges,
    }
