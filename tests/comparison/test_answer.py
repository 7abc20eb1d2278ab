"""The answer claims no more than the intervals, and the files lie where they are looked for."""

import json
import math
import re
import shutil

import pandas as pd
import pytest
from commands import process
from saved import entry_with

from srs_eval.comparison.answer import cautions, headline, table, terminal, warnings
from srs_eval.comparison.compare import compare, compare_jobs
from srs_eval.comparison.entry import read_entry
from srs_eval.comparison.report import as_json, latex, markdown, page
from srs_eval.comparison.standings import mean_of
from srs_eval.metrics.means import MetricSummary

TWO = "a | b blur=1"
LEADS = r"ours leads: log loss 0\.\d{4}, \d+ % below each user's average\."
OWN = 'avg scores={{"log_loss":{}}} | ours scores={{"log_loss":0.3}}'
NO_MODEL = r"No model is better than each user's average \(avg, log loss 0\."


@pytest.mark.parametrize(
    ("words", "said", "doubt"),
    [
        ("avg blur=2 | ours | close blur=0.1", LEADS, "Not clearly worse: close."),
        ("avg blur=2 | ours", "ours predicts best", "All others are clearly worse."),
        ("avg blur=0.1 | ours | b blur=0.15", "ours", "That can be noise. b is not clearly worse."),
        ("avg | other blur=2", NO_MODEL, "All others are clearly worse."),
        ("oracle sees_truth=true | seen in_sample=true", ".* but no model here may lead", ""),
        ("avg blur=1 | ours | late when=at_review", "Predicted", ".*Predicted at the review, late"),
        ('a users=[1] rows={"1":[0,60]}', "Too few answers to tell: 60 scored, ", "It takes 100"),
        ("avg blur=2 | ours | o sees_truth=true", "ours predicts", "All others are clearly worse."),
        ("avg blur=2 | ours | seen in_sample=true", "ours predicts", "All others that may lead"),
        ("avg blur=0.3 | f failed=[13] | b blur=2", "Apart from f, no model is better", "All"),
        (OWN.format(0.3002), "ours predicts best.*, less than 0.1 % below", "All others"),
        (OWN.format(0.3336), "ours predicts best.*, 10 % below", "All others"),
        ("ours | metric=auc", r"ours: auc 0\.\d{4}\.", ""),
    ],
)
def test_the_sentence_claims_no_more_than_the_intervals(compared, words, said, doubt):
    standings = compared(words)
    first, second = headline(standings)
    assert ("when" in table(standings).headers) == ("when=" in words)
    assert re.match(said, first), first
    assert re.match(doubt or "$", second), second


def test_few_answers_have_a_sentence_and_no_table(compared, page_without_images):
    few = compared('a users=[1] rows={"1":[0,60]} | b users=[1] rows={"1":[0,60]} blur=1')
    for form in (terminal, markdown, latex, page):
        assert not re.search(r"0\.\d{4}", form(few)), form.__name__
    assert len(as_json(few)["leaderboard"]) == 2
    assert "clustered by card and day" in page(few)
    runs = [entry_with("a", {1: size}, {"log_loss": [0.3]}) for size in (99, 100)]
    assert [bool(compare([run]).too_few) for run in runs] == [True, False]
    assert compare([entry_with("a", {1: 200}, {"log_loss": [math.nan]})]).users == []


def test_the_files_of_a_sweep_lie_beside_its_jobs_unless_they_cannot_be_compared(
    runs_in_words, page_without_images, tmp_path
):
    def jobs_of(folders):
        return compare_jobs(folders, tmp_path / "sweep", command="")

    folders, _ = runs_in_words(f"{TWO} | broken")
    scores = folders[2] / "scores.parquet"
    pd.read_parquet(scores)[:0].to_parquet(scores)
    (report,) = jobs_of(folders[::-1])
    assert report.standings.table.index.tolist() == ["a", "b"]
    assert "  worse\n" in repr(report.standings)
    assert {file.parent for file in report.files} == {tmp_path / "sweep"}
    assert report.files[-1].name == "report.html"
    for text in (repr(report.standings), report.files[-1].read_text("utf-8")):
        assert "broken scored 0 of 12 users and is not ranked" in text
    assert jobs_of(folders[2:]) == []
    (folders[1] / "scores.parquet").write_bytes(b"damaged")
    (report,) = jobs_of(folders)
    assert "1_b/scores.parquet: cannot be read" in report.problem.replace("\\", "/")
    assert (report.standings, report.files) == (None, ())


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ("a | b failed=[3]", ["ab"]),
        ("a | b data=other", ["a", "b"]),
        ("a | b | few users=[1,2,3]", ["ab"]),
        ("a | half users=[1,2,3,4,5,6]", ["ahalf"]),
    ],
)
def test_jobs_are_compared_in_groups_that_scored_the_same_reviews(
    runs_in_words, page_without_images, tmp_path, words, groups
):
    reports = compare_jobs(runs_in_words(words)[0], tmp_path / "sweep", command="")
    assert ["".join(sorted(each.standings.runs)) for each in reports] == groups


@pytest.mark.parametrize(
    ("apart", "is_warned"),
    [("", True), ("is_validation=true", False), ("in_sample=true", False), ("protocol=x", False)],
)
def test_a_choice_by_test_rows_is_warned_of(compared, apart, is_warned):
    notes = as_json(compared(f"a algo=hlr | b algo=hlr blur=1 {apart}"))["notes"]
    assert any("same test reviews" in note for note in notes) == is_warned


def test_the_bias_at_retention_says_over_how_many_users_it_is(compared):
    name = "threshold_bias_at_0_9"
    scores = [f'users=[1,2] scores={{"{name}":{value}}}' for value in ("[0.02,NaN]", "NaN")]
    standings = compared(f"a {scores[0]} | b {scores[1]} blur=1")
    first, second, *_ = as_json(standings)["leaderboard"]
    assert (first[name], first[f"{name}_users"], second[f"{name}_users"]) == (0.02, 1, 0)
    assert second[name] is None
    assert compared("bare users=[1,2]").bias is None


COVERAGE = {
    "users": {"read": 20, "scored": 12, "skipped": 7, "failed": 1},
    "reviews": {"read": 4_000, "scored": 2_480, "unscored": {"the first of their card": 900}},
    "left_out": [{"status": "skipped", "reason": "too short", "users": 7, "reviews": 70}],
}


@pytest.mark.parametrize(
    ("few", "users", "reviews"),
    [("", 12, 2_480), (' | few users=[1,2,3] rows={"1":[0,60]}', 2, 220)],
)
def test_what_is_left_out_is_said_in_every_output_and_adds_up(
    runs_in_words, page_without_images, few, users, reviews
):
    folders, _ = runs_in_words(f"a | b blur=1 fits=1 fallback=1{few}")
    for folder in folders:
        summary = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps({**summary, "coverage": COVERAGE}))
    if few:
        (folders[2] / "predictions.parquet").unlink()
    standings = compare([*map(read_entry, folders)], intersect=True)
    content, reasons = (
        as_json(standings),
        r"their card \(900\).* 7 users with 70 reviews: too short",
    )
    assert re.search(reasons, page(standings), re.DOTALL)
    counts = {run["run"]: (run["fits"], run["fallback"]) for run in content["leaderboard"]}
    assert (counts["b"], counts["a"]) == ((1, 1), (None, None))
    coverage = content["coverage"]
    assert (coverage["users"]["scored"], coverage["reviews"]["scored"]) == (users, reviews)
    lost = [each["users"] for each in coverage["left_out"]]
    assert lost == ([7, 12 - users] if few else [7])
    lost, whole = 20 - users, 3_100 - reviews
    shares = f"{5 * lost} % of the users ({lost} of 20 read) and {whole / 40:.0f} % of the reviews"
    for form in (terminal, markdown, latex, page):
        text = " ".join(re.sub(r"\\|&nbsp;", " ", form(standings)).split())
        assert f"{shares} ({whole:,} of 4,000 read) left out" in text, form.__name__
        assert f"{users} users, {reviews:,} reviews scored" in text, form.__name__
        assert ("Restricted to what all runs scored" in text) == bool(few), form.__name__


def model(scores, reviews=200, **facts):
    users = range(len(next(iter(scores.values()))))
    return entry_with("ours", dict.fromkeys(users, reviews), scores, **{"forgotten": 40, **facts})


@pytest.mark.parametrize(
    ("scores", "about", "said"),
    [
        ({"auc": [0.98], "normalized_entropy": [0.11]}, {}, ""),
        ({"auc": [0.99], "normalized_entropy": [0.11]}, {}, "auc 0.9900, too good"),
        ({"auc": [0.9], "normalized_entropy": [0.1]}, {}, "normalized_entropy 0.1000, too good"),
        ({"log_loss": [0.3, math.nan], "log_loss_certain_wrong": [0, math.nan]}, {}, ""),
        ({"log_loss": [3.0, 3.0], "log_loss_certain_wrong": [1, 1]}, {}, ""),
        ({"log_loss": [1.0, 1.0], "log_loss_certain_wrong": [1, 1]}, {}, "2 certain .* 18 % of "),
        ({"auc": [1.0]}, {"sees_truth": True}, ""),
        ({"auc": [1.0]}, {"forgotten": 9}, ""),
        ({"auc": [1.0]}, {"forgotten": 10}, "too good"),
        ({"auc": [1.0]}, {"forgotten": 0}, "too good"),  # not known
        ({"auc": [1.0]}, {"reviews": 99}, ""),
        ({"auc": [1.0]}, {"reviews": 100}, "too good"),
    ],
)
def test_scores_are_not_what_they_seem_from_a_limit_on(scores, about, said):
    run = model(scores, **about)
    text = "\n".join(warnings(run, run.users))
    assert re.search(said, text)
    assert bool(text) == bool(said)


def test_cautions_count_few_users_rows_left_out_and_failed_fits():
    one = {"left_out": {"no card": 2, "no day": 3}, "failed": 4, "fits": 9}
    cases = ((1, {}, "one user"), (2, {}, "only 2 users"), (9, {}, "only 9 users"), (10, {}, "$"))
    for users, about, said in (*cases, (10, one, "5 rows .*: ours 4 of 9")):
        text = " ".join(cautions(compare([model({"log_loss": [0.3] * users}, **about)])))
        assert re.match(f"(caution: )?{said}", text), text


def test_of_a_single_user_the_interval_of_the_run_counts_if_it_is_of_these_reviews():
    metrics = {"normalized_entropy": MetricSummary(1.2, math.nan, math.nan, 1.1, 1.3, 1, math.nan)}
    for value, lo in ((1.2, 1.1), (1.25, math.nan)):
        mean = mean_of(model({"normalized_entropy": [value]}, metrics=metrics), *metrics, [0])
        assert mean.lo == pytest.approx(lo, nan_ok=True)


@pytest.mark.slow
def test_the_table_compiles_and_fits_the_page(compared, tmp_path):
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("needs pdflatex: apt-get install texlive-latex-recommended")
    text = latex(compared(TWO))
    (tmp_path / "comparison.tex").write_text(text)
    packages, *_ = text.removeprefix("% needs ").splitlines()
    document = ["\\documentclass{article}", packages, "\\begin{document}"]
    document += ["\\input{comparison}", "\\end{document}"]
    (tmp_path / "main.tex").write_text("\n".join(document))
    words = [compiler, "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = process(words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout
