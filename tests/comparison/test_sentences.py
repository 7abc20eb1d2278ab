"""What comparisons say in words, held against a file of texts, and said in every format."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report.files import as_json, latex, markdown, terminal_text
from srs_eval.comparison.report.html import page
from srs_eval.results.run import load_run

pytestmark = pytest.mark.usefixtures("page_without_images")


def judged(*folders, **options):
    return compare([load_run(folder) for folder in folders], **options)


def two(run, *users, second=None, **options):
    """Two runs that differ, of which the second has options of its own."""
    return run("a", *users, **options), run("b", *users, blur=1, **{**options, **(second or {})})


def doubtful(run):
    """A leader that a constant beats, and an average that was certain and wrong."""
    entropy, bias, wrong = "normalized_entropy", "threshold_bias_at_0_9", "log_loss_certain_wrong"
    metrics = (
        {"log_loss": [0.3, 0.31], entropy: [1.05, 1.07], wrong: [0, 0], bias: [0.02, np.nan]},
        {"log_loss": [0.7, 0.6], entropy: [2.5, 2.7], wrong: [1, 1], bias: [np.nan, np.nan]},
    )
    folders = without_predictions(two(run, [1, 2]))
    for folder, columns, area in zip(folders, metrics, (0.6, 1.0), strict=True):
        file = folder / "scores.parquet"
        pd.read_parquet(file).assign(**columns, auc=area).to_parquet(file)
    return folders


def without_predictions(folders):
    for folder in folders:
        (folder / "predictions.parquet").unlink()
    return folders


def beside_published(run):
    own, other = map(load_run, two(run))
    published = replace(other, name="theirs", rows=dict.fromkeys(own.rows, ""))
    return compare([own, published])


NO_INTERVAL = {"metrics": {"log_loss": {"lo": None, "hi": None}}}
SAID = {
    "one run alone": lambda run: judged(run("a")),
    "higher is better": lambda run: judged(*two(run), metric="auc"),
    "one user": lambda run: judged(*two(run, [1])),
    "one user, by a metric without intervals": lambda run: judged(*two(run, [1]), metric="auc"),
    "one user without predictions": lambda run: judged(
        *without_predictions(two(run, [1], **NO_INTERVAL))
    ),
    "one user of two": lambda run: judged(*two(run, [1, 2], failed=[2], **NO_INTERVAL)),
    "one user who has the metric": lambda run: judged(
        *two(run, [1, 2], only_recalled=[2]), metric="auc"
    ),
    "users who failed alike": lambda run: judged(*two(run, failed=[2, 5])),
    "in common": lambda run: judged(*two(run, second={"failed": [2]}), intersect=True),
    "several protocols": lambda run: judged(*two(run, second={"protocol": "other"})),
    "published scores": beside_published,
    "a copy": lambda run: judged(
        run("a"), run("b", blur=1, folder="first"), run("b", blur=1, folder="copy")
    ),
    "times and runs that do not count": lambda run: judged(
        *two(run, when="day_before"),
        run("oracle", sees_truth=True, when="at_review"),
        run("current", in_sample=True),
        run("old", when="unknown", fits=3, failed_fits=1),
    ),
    "fits that fell back": lambda run: judged(
        *two(run, fits=9, second={"fits": 60, "fallback": 7, "not_converged": 2})
    ),
    "settings of one algorithm": lambda run: judged(*two(run, algo="hlr")),
    "doubtful": lambda run: judged(*doubtful(run)),
}


def test_it_is_said_in_the_words_of_the_file(make_run, golden_text):
    told = []
    for name, call in SAID.items():
        verdict = call(make_run)
        text = terminal_text(verdict)
        if name == "doubtful":
            text = markdown(verdict).partition("## Where they come from")[0]
        told.append(f"=== {name}\n{text.strip()}\n")
    golden_text("comparison_sentences", "\n".join(told))


def test_what_could_mislead_is_said_in_every_format(make_run):
    verdict = judged(*doubtful(make_run))
    notes = as_json(verdict)["notes"]
    assert len(notes) > 4
    for form in (terminal_text, markdown, latex, page):
        text = html.unescape(form(verdict)).replace("\\%", "%").replace("\\_", "_")
        assert [note for note in notes if note not in text] == [], form.__name__
    assert terminal_text(verdict, of_sweep=True).count("certain predictions") == 1
    rows = as_json(verdict)["leaderboard"]
    name = "threshold_bias_at_0_9"
    assert [(row[name], row[f"{name}_users"]) for row in rows[:1]] == [(0.02, 1)]
    assert np.isnan(rows[1][name])
    assert rows[1][f"{name}_users"] == 0
