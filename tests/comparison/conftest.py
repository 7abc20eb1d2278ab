"""Finished runs made up in a moment: outcomes are shared, predictions differ."""

import os
from dataclasses import asdict, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cases import values_in
from metric_functions import one_user
from scipy.special import expit

from srs_eval.comparison import report
from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import read_entry
from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.means import MetricSummary
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import rows_fingerprint, select
from srs_eval.metrics.scores import auc, brier, log_loss
from srs_eval.runs.folder import SCORES, SUMMARY, save, write_json
from srs_eval.runs.summary import Summary

PANEL = Panel([log_loss, brier, auc])
METRIC = MetricSummary(*[np.nan] * 3, 0.1, 0.9, 0)


def reviews_of(user, number):
    """Reviews of an invented user, and the true log-odds of recall."""
    rng = np.random.default_rng(number)
    n = 1_200 if number == 12 else 60 + 20 * (number % 7)
    log_odds = rng.normal(1.2 + 0.1 * (number % 5), 1.0, n)
    facts = {
        "recalled": rng.random(n) < expit(log_odds),
        "day": np.sort(rng.integers(0, 50, n)),
        "last_rating": rng.integers(0, 5, n),
        "recalls": rng.integers(0, 12, n),
    }
    whole = one_user(n, cards=n // 5, seed=number)
    return replace(whole, users=(user,), curves=None, **facts), log_odds


@cache
def _scored(user, number, seed, moved, part):
    """Predictions for a user, their fingerprint and scores: most tests have the same ones."""
    made, log_odds = reviews_of(user, number)
    noise = np.random.default_rng(seed).normal(0, 1, len(made))
    shift, blur = moved
    p = expit(log_odds + shift + blur * noise)
    predictions = select(replace(made, p=p), slice(*part))
    return predictions, rows_fingerprint(predictions), [*PANEL.score(predictions).values()]


@pytest.fixture
def page_without_images(monkeypatch):
    """Leave the pictures out of pages, which take longer than all else, where words are read."""
    monkeypatch.setattr(report, "_pictures", lambda _: [])


@pytest.fixture
def make_run(tmp_path):
    """Write the folder of a run whose predictions are the truth, blurred and shifted.

    Rows are the first and the last but one by user; runs may have scores of their own, other
    cards, and a file that is cut. Further options are those of its summary.
    """

    def make(
        label,
        users=tuple(range(1, 13)),
        *,
        blur=0.0,
        shift=0.0,
        other_reviews=(),
        failed=(),
        rows=None,
        folder=None,
        scores=None,
        cards=0,
        cut="",
        **summary,
    ):
        parts = []
        for user in users:
            number = user + (500 if user in other_reviews else 0)
            part = tuple((rows or {}).get(f"{user}", (None, None)))
            parts.append(_scored(user, number, (user, len(label)), (shift, blur), part))
        predictions, digests, values = map(list, zip(*parts, strict=True))
        sizes = [*map(len, predictions)]
        for place, user in enumerate(users):
            if user in failed:
                digests[place], sizes[place] = "", 0
                values[place] = [np.nan] * len(PANEL.names)
        place = tmp_path / (folder or f"{len(list(tmp_path.iterdir()))}_{label}")
        facts = {
            **{"label": label, "algo": label, "data": "invented", "protocol": "srs_benchmark"},
            **{"users": len(users), "reviews": sum(sizes), "failed": len(failed)},
            "forgotten": sum(int((~part.recalled).sum()) for part in predictions),
            "metrics": {"log_loss": METRIC},
            "when": "previous_review",
            "tags": {"config_hash": f"hash of {label}"},
        }
        of_users = tuple(users), np.array(sizes), tuple(digests), PANEL.names, np.array(values)
        made = SimpleNamespace(
            summary=Summary(**facts),
            scores=Scores(*of_users),
            users=users,
            predictions=lambda: (replace(part, card=part.card + cards) for part in predictions),
            checkpoint=SimpleNamespace(read=lambda _: SimpleNamespace(fits=())),
        )
        save(made, place)
        write_json(place / SUMMARY, {**asdict(made.summary), **summary})
        table = pd.read_parquet(place / SCORES)
        table.assign(**(scores or {})).to_parquet(place / SCORES)
        if cut:
            os.truncate(place / cut, (place / cut).stat().st_size - 20)
        return place

    return make


@pytest.fixture
def runs_in_words(make_run):
    """Make the runs of words, ``LABEL KEY=VALUE … | LABEL … | KEY=VALUE …``.

    Return their folders, and the values of the part without a label.
    """

    def made(words):
        parts = [part.split() for part in words.split(" | ")]
        further = values_in(parts.pop()) if "=" in parts[-1][0] else {}
        return [make_run(label, **values_in(options)) for label, *options in parts], further

    return made


@pytest.fixture
def compared(runs_in_words):
    """Compare the runs of words."""

    def standings_of(words):
        folders, options = runs_in_words(words)
        return compare([*map(read_entry, folders)], **options)

    return standings_of
