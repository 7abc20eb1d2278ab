"""Finished runs made up in a moment: outcomes are shared, predictions differ."""

import os
import re
from dataclasses import asdict, replace
from functools import cache
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cases import values_in

from srs_eval.comparison import report
from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.means import MetricSummary
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions, rows_fingerprint, select
from srs_eval.metrics.scores import auc, brier, log_loss
from srs_eval.runs.folder import SUMMARY, save, write_json
from srs_eval.runs.summary import Summary

PANEL = Panel([log_loss, brier, auc])
METRIC = MetricSummary(*[np.nan] * 5, 0)


def reviews_of(user, number, *, only_recalled=False):
    """Reviews of an invented user, and the true log-odds of recall."""
    rng = np.random.default_rng(number)
    n = 1_200 if number == 12 else 60 + 20 * (number % 7)
    log_odds = rng.normal(1.2 + 0.1 * (number % 5), 1.0, n)
    recalled = np.ones(n, bool) if only_recalled else rng.random(n) < 1 / (1 + np.exp(-log_odds))
    reviews = Predictions(
        users=(user,),
        user=np.zeros(n, np.int64),
        fold=np.zeros(n, np.int64),
        row=np.arange(n),
        card=rng.integers(0, n // 5, n),
        p=np.full(n, 0.5),
        recalled=recalled,
        day=np.sort(rng.integers(0, 50, n)),
        elapsed_days=rng.integers(1, 200, n).astype(np.float64),
        nth_review=rng.integers(2, 30, n),
        lapses=rng.integers(0, 12, n),
        last_rating=rng.integers(0, 5, n),
        recalls=rng.integers(0, 12, n),
    )
    return reviews, log_odds


@cache
def _scored(user, number, answers, seed, moved, part):
    """Predictions for a user, their fingerprint and scores: most tests have the same ones."""
    made, log_odds = reviews_of(user, number, only_recalled=answers == "recalled")
    noise = np.random.default_rng(seed).normal(0, 1, len(made))
    shift, blur = moved
    p = 1 / (1 + np.exp(-(log_odds + shift + blur * noise)))
    predictions = select(replace(made, p=p), slice(*part))
    return predictions, rows_fingerprint(predictions), PANEL.score(predictions)


@pytest.fixture
def page_without_images(monkeypatch):
    """Leave the pictures out of pages, which take longer than all else, where words are read."""
    monkeypatch.setattr(report, "_pictures", lambda _: [])


@pytest.fixture
def make_run(tmp_path):
    """Write the folder of a run whose predictions are the truth, blurred and shifted."""

    def make(
        label,
        users=tuple(range(1, 13)),
        *,
        blur=0.0,
        shift=0.0,
        other_reviews=(),
        failed=(),
        only_recalled=(),
        rows=None,
        folder=None,
        **summary,
    ):
        parts, digests, values, sizes = [], [], [], []
        for place, user in enumerate(users):
            number = user if isinstance(user, int) else 1000 + place
            part = (rows or {}).get(user, slice(None))
            predictions, digest, row = _scored(
                user,
                number + (500 if user in other_reviews else 0),
                "recalled" if user in only_recalled else "any",
                (number, len(label)),
                (shift, blur),
                (part.start, part.stop, part.step),
            )
            parts.append(predictions)
            whole = user not in failed
            digests.append(digest if whole else "")
            sizes.append(len(predictions) if whole else 0)
            values.append([row[name] if whole else np.nan for name in PANEL.names])
        place = tmp_path / (folder or f"{len(list(tmp_path.iterdir()))}_{label}")
        known = summary.pop("metrics", {"log_loss": {"lo": 0.1, "hi": 0.9}})
        facts = {
            "label": label,
            "algo": label,
            "data": "invented",
            "protocol": "srs_benchmark",
            "users": len(users),
            "reviews": sum(sizes),
            "forgotten": sum(int((~part.recalled).sum()) for part in parts),
            "failed": len(failed),
            "metrics": {name: replace(METRIC, **row) for name, row in known.items()},
            "when": "previous_review",
            "tags": {"config_hash": f"hash of {label}"},
        }
        made = SimpleNamespace(
            summary=Summary(**facts),
            scores=Scores(
                *(tuple(users), np.array(sizes), tuple(digests), PANEL.names, np.array(values))
            ),
            users=users,
            predictions=lambda: iter(parts),
            checkpoint=SimpleNamespace(read=lambda _: SimpleNamespace(fits=())),
        )
        save(made, place)
        write_json(place / SUMMARY, {**asdict(made.summary), **summary})
        return place

    return make


# Predictions that are not those of their run.
SPOILED = {
    "another_card": lambda table: table.assign(
        card=table.card + ((table.user == 4) & (table.row == 60))
    ),
    "no_p": lambda table: table.drop(columns="p"),
    "twice": lambda table: pd.concat([table, table[table.user == 4][-1:]]),
}


@pytest.fixture
def runs_in_words(make_run):
    """Make the runs of a line of a transcript, ``LABEL KEY=VALUE … | LABEL … | KEY=VALUE …``.

    Returned are their folders, and the values of the part without a label. Beside what `make_run`
    takes, runs may have scores of their own, no predictions, and files that are cut off.
    """
    lines = count()

    def run(label, *, scores=None, predictions=True, spoiled="", cut="", **options):
        rows = {int(user): slice(*part) for user, part in options.pop("rows", {}).items()}
        made = make_run(label, rows=rows, **options)
        for file, change in (
            ("scores.parquet", scores and (lambda table: table.assign(**scores))),
            ("predictions.parquet", SPOILED.get(spoiled)),
        ):
            if change:
                change(pd.read_parquet(made / file)).to_parquet(made / file)
        if not predictions:
            (made / "predictions.parquet").unlink()
        if cut:
            os.truncate(made / cut, (made / cut).stat().st_size - 20)
        return made

    def made(*words):
        line, folders, further = next(lines), [], {}
        for part in filter(None, " ".join(words).split(" | ")):
            if re.match(r"\w+=", part):
                further = values_in(part.split())
            else:
                label, *given = part.split()
                place = f"{line}/{len(folders)}_{label}"
                folders.append(run(label, folder=place, **values_in(given)))
        return folders, further

    return made
