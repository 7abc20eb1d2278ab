"""The data of a board as scripts, which a page can load from a folder as well as from a server.

Browsers refuse to fetch other files where the page comes from a folder. Numbers are exact: float64
in base64.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.comparison.strata import FACTS
from srs_eval.comparison.verdict import BESIDE
from srs_eval.nouns import FloatArray
from srs_eval.nouns.when import IN_WORDS
from srs_eval.results.run import TRAITS
from srs_eval.site.view import WEIGHTINGS, Means, Model, View
from srs_eval.submit.scores_check import follow_from_sums
from srs_eval.text.plain import cleaned, one_line

MEANINGS = {
    "reported": "made by its author; the files are consistent, and it was not run again",
    "verified": "run again by a maintainer, with equal scores",
    "published": "scores that another project has published",
}


def write_scripts(shown: View, folder: Path) -> None:
    """Write the models of a board, its users, and their scores, a file for each metric."""
    (folder / "scores").mkdir()
    users = [one_line(str(user)) for user in shown.paired.users]
    sizes = _exact(shown.paired.reviews.astype(np.float64))
    _write(folder, "board", _board(shown))
    _write(folder, "users", {"names": users, "reviews": sizes})
    for metric in shown.means:
        _write(folder, f"scores/{metric}", _exact(shown.paired.scores(metric).T))


def _write(folder: Path, key: str, content: Any) -> None:
    """Write one script; "<" is escaped, so that no text can end a script or begin a tag."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c")
    (folder / f"{key}.js").write_text(f'data.receive("{key}",{text});\n', encoding="ascii")


def _exact(values: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()


def _board(shown: View) -> dict[str, Any]:
    (size,) = (fact for fact in FACTS if fact.name == "size")
    recomputed = follow_from_sums([*shown.means])
    return {
        "name": shown.board.name,
        "users": len(shown.paired.users),
        "columns": len(shown.paired.runs),
        "times": shown.times,
        "inWords": {when: IN_WORDS[when] for when in shown.times},
        "meanings": MEANINGS,
        "metrics": [
            {**_metric(name, means), "recomputed": name in recomputed}
            for name, means in shown.means.items()
        ],
        "strata": {"edges": size.edges[:-1], "labels": size.labels},
        "models": [cleaned(model_facts(model, shown)) for model in shown.models],
    }


def _metric(name: str, means: Means) -> dict[str, Any]:
    columns = ("means", "lo", "hi")
    return {
        "name": name,
        "better": means.better,
        "default": name in BESIDE,
        **{
            key: {w: _finite(means.values[w][:, n].tolist()) for w in WEIGHTINGS}
            for n, key in enumerate(columns)
        },
    }


def _finite(values: Iterable[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def model_facts(model: Model, shown: View) -> dict[str, Any]:
    """Return what tables show of a model beside its scores."""
    one, run = model.submission, model.run
    return {
        "id": one.name,
        "title": model.title,
        "mark": one.mark,
        "when": run.when,
        "column": model.column,
        "twin": model.twin or None,
        "eligible": run.is_eligible,
        "pretrained": "pretrained" in run.traits,
        "family": model.family,
        "authors": [str(author) for author in one.about.get("authors") or ()],
        "parameters": model.number("parameters"),
        "seconds": model.number("seconds_per_user"),
        "badges": badges(model, shown),
    }


def traits_of(model: Model) -> list[tuple[str, str]]:
    """Return the traits of a model in a word, each with its meaning."""
    return [
        ("oracle" if trait == "sees_truth" else trait, meaning)
        for trait, (_, meaning) in TRAITS.items()
        if trait in model.run.traits
    ]


def badges(model: Model, shown: View) -> list[tuple[str, str]]:
    """Return what else is worth a badge in a word or two, each with its meaning."""
    found = traits_of(model)
    found += [
        (f"hypothesis {one.judgement.in_short}", one_line(one.judgement.sentence))
        for one in shown.registered
        if one.judgement and one.model == model.submission.name
    ]
    if model.run.fits.has_exceptions:
        found.append(("irregular fits", model.run.fits.in_words))
    if model.run.incomplete:
        count = len(model.run.incomplete)
        found.append((f"{count:,} users failed", "a fold of these users has failed"))
    return found
