"""The answer claims no more than the intervals, and the files lie where they are looked for."""

import json
import re
import shutil

import pandas as pd
import pytest
from commands import process

from srs_eval.comparison.answer import headline, table, terminal
from srs_eval.comparison.compare import compare, compare_jobs
from srs_eval.comparison.entry import read_entry
from srs_eval.comparison.report import as_json, latex, markdown, page

TWO = ("a", "|", "b", "blur=1")


def standings_of(*folders, **options):
    return compare([read_entry(folder) for folder in folders], **options)


@pytest.fixture
def told(runs_in_words):
    """Return the standings of runs in words: see `runs_in_words`."""

    def told_of(words):
        folders, options = runs_in_words(*words.split())
        return standings_of(*folders, **options)

    return told_of


LEADS, BEST = (
    r"ours leads: log loss 0\.\d{4}, \d+ % below each user's average\.",
    "ours predicts best",
)
NO_MODEL = r"No model is better than each user's average \(avg, log loss 0\."


@pytest.mark.parametrize(
    ("words", "said", "doubt"),
    [
        ("avg blur=2 | ours | close blur=0.1", LEADS, "Not clearly worse: close."),
        ("avg blur=2 | ours", BEST, "All others are clearly worse."),
        ("avg blur=0.1 | ours | b blur=0.15", "ours", "That can be noise. b is not clearly worse."),
        ("avg | other blur=2", NO_MODEL, "All others are clearly worse."),
        ("avg | other blur=0.2", NO_MODEL, "Not clearly worse: other."),
        (
            "avg blur=1 | other blur=3 | mine failed=[3] | intersect=true",
            "Apart from mine, no model is better",
            "All others that may lead are clearly worse.",
        ),
        (
            "avg blur=1 | oracle sees_truth=true | seen in_sample=true | ours blur=0.5",
            "ours ",
            None,
        ),
        ("oracle sees_truth=true | seen in_sample=true", ".* but no model here may lead", ""),
        (
            "avg blur=0.1 | ours when=at_review",
            "Predicted at the card's previous review, avg",
            None,
        ),
        ("avg blur=1 | ours | late when=at_review", "Predicted", ".*Predicted at the review, late"),
        ('a users=[1] rows={"1":[0,60]}', "Too few answers to tell: 60 scored, ", "It takes 100"),
        ("ours | same", "ours leads: ", "Not clearly worse: same."),
        ("ours | metric=auc", r"ours: auc 0\.\d{4}\.", ""),
    ],
)
def test_the_sentence_claims_no_more_than_the_intervals(told, words, said, doubt):
    first, second = headline(told(words))
    assert re.match(said, first), first
    if doubt is not None:
        assert re.match(doubt, second), second
        assert doubt or not second


def test_when_is_a_column_where_it_differs_between_models_that_know_no_truth(told):
    assert "when" in table(told("avg blur=1 | ours | late blur=0.1 when=at_review")).headers
    oracle = told("avg blur=1 | ours | oracle blur=0.1 when=at_review sees_truth=true")
    assert "when" not in table(oracle).headers
    assert "predict at different times" not in terminal(oracle) + page(oracle)


def test_few_answers_have_a_sentence_and_no_table(told, page_without_images):
    found = told('a users=[1] rows={"1":[0,60]} | b users=[1] rows={"1":[0,60]} blur=1')
    for form in (terminal, markdown, latex, page):
        assert not re.search(r"0\.\d{4}", form(found)), form.__name__
    assert len(as_json(found)["leaderboard"]) == 2


def test_the_terminal_shows_ten_models_in_25_lines_of_80_columns(told):
    names = [f"a_model_with_a_very_long_name_and_{'arguments_' * 3}{n}" for n in range(9)]
    found = told(
        " | ".join(["avg blur=0.1", *(f"{name} blur=0.{n}" for n, name in enumerate(names))])
    )
    lines = terminal(found).splitlines()
    assert len(lines) <= 23  # and two for the report and for MLflow
    assert max(map(len, lines)) <= 80


def test_every_output_has_the_notes_and_counts_of_fits(told, page_without_images):
    short = 'rows={"1":[0,60]} predictions=false'
    found = told(f"a | b blur=1 fits=15 fallback=14 users=[1,2,3] {short} | intersect=true")
    notes = (
        "Restricted to what all runs scored: 220 of 2,480 reviews, 2 of 12 users",
        "b kept no predictions: users for whom runs scored different reviews are left out",
    )
    for form in (terminal, markdown, latex, page):
        text = " ".join(form(found).replace("\\", "").split())
        assert all(note in text for note in notes), form.__name__
    first, second, *_ = as_json(found)["leaderboard"]
    assert (second["fits"], second["fallback"], first["fits"]) == (15, 14, None)


def test_the_page_folds_its_details_and_says_little_at_first(make_run):
    folders = [make_run(name, blur=n / 3) for n, name in enumerate(("avg", "ours", "b", "c"))]
    text = page(standings_of(*folders), command="compare a b")
    at_first = re.sub(r"<(head|style|details)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert len(re.sub("<[^>]*>", " ", at_first).split()) < 900
    assert at_first.count("<svg") == 2
    for what in ("Every pair", "Where they differ", "Each user", "How this is computed"):
        assert f"<details><summary>{what}" in text
    assert not re.search(r"\bnan\b", text)


def test_the_files_of_a_sweep_lie_beside_its_jobs_unless_they_cannot_be_compared(
    runs_in_words, page_without_images, tmp_path
):
    folders, _ = runs_in_words(*TWO)
    (found,) = compare_jobs(folders[::-1], tmp_path / "sweep", command="")
    assert not found.problem
    assert found.table["run"].tolist()[:2] == ["a", "b"]
    assert {file.parent for file in found.files} == {tmp_path / "sweep"}
    assert found.files[-1] == tmp_path / "sweep" / "report.html"
    (folders[1] / "scores.parquet").write_bytes(b"damaged")
    (found,) = compare_jobs(folders, tmp_path / "sweep", command="")
    assert "1_b/scores.parquet: cannot be read" in found.problem.replace("\\", "/")
    assert (found.text, found.files, len(found.table)) == ("", (), 0)


def test_jobs_are_compared_in_groups_that_scored_the_same_reviews(
    runs_in_words, page_without_images, tmp_path
):
    def models(words):
        reports = compare_jobs(runs_in_words(*words.split())[0], tmp_path / "sweep", command="")
        return [sorted({*each.table.run}) for each in reports]

    assert models("a | b failed=[3]") == [["a", "b"]]
    assert models("a | b data=other") == [["a"], ["b"]]
    assert models("a | b | few users=[1,2,3]") == [["a", "b"]]
    assert models("a | half users=[1,2,3,4,5,6]") == [["a", "half"]]


def test_a_job_that_scored_no_user_is_named_wherever_the_others_are_compared(
    runs_in_words, page_without_images, tmp_path
):
    folders, _ = runs_in_words("broken", "|", *TWO)
    scores = folders[0] / "scores.parquet"
    pd.read_parquet(scores)[:0].to_parquet(scores)
    (found,) = compare_jobs(folders, tmp_path / "sweep", command="")
    assert [*found.table.run.unique()] == ["a", "b"]
    for text in (found.text, found.files[-1].read_text("utf-8")):
        assert "broken scored 0 of 12 users and is not ranked" in text
    assert compare_jobs(folders[:1], tmp_path / "alone", command="") == []


def test_a_choice_by_test_rows_is_warned_of(told):
    def warned(words):
        notes = as_json(told(words))["notes"]
        return [note.partition(" were")[0] for note in notes if "same test reviews" in note]

    settings = "a algo=hlr | b algo=hlr blur=1 | avg algo=avg"
    assert warned(settings) == ["2 settings of hlr"]
    assert warned(f"{settings} | c algo=hlr shift=1") == ["3 settings of hlr"]
    for apart in ("is_validation=true", "in_sample=true", "protocol=prequential"):
        assert warned(f"a algo=hlr | b algo=hlr blur=1 {apart}") == []


def test_the_bias_at_retention_says_over_how_many_users_it_is(make_run, told):
    name = "threshold_bias_at_0_9"
    scores = [f'users=[1,2] scores={{"{name}":{value}}}' for value in ("[0.02,NaN]", "NaN")]
    found = told(f"a {scores[0]} | b {scores[1]} blur=1")
    first, second, *_ = as_json(found)["leaderboard"]
    assert (first[name], first[f"{name}_users"], second[f"{name}_users"]) == (0.02, 1, 0)
    assert second[name] is None
    assert standings_of(make_run("bare", [1, 2])).bias is None


COVERAGE = {
    "users": {"read": 20, "scored": 12, "skipped": 7, "failed": 1},
    "reviews": {"read": 4_000, "scored": 2_480, "unscored": {"the first of their card": 900}},
    "left_out": [{"status": "skipped", "reason": "too short", "users": 7, "reviews": 70}],
}


@pytest.mark.parametrize(("few", "users", "reviews"), [("", 12, 2_480), ("users=[1,2,3]", 3, 300)])
def test_what_is_left_out_is_said_in_every_output_and_adds_up(
    runs_in_words, page_without_images, few, users, reviews
):
    folders, _ = runs_in_words(*TWO, *few.split())
    for folder in folders:
        summary = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps({**summary, "coverage": COVERAGE}))
    found = standings_of(*folders, intersect=True)
    coverage = as_json(found)["coverage"]
    assert (coverage["users"]["scored"], coverage["reviews"]["scored"]) == (users, reviews)
    lost = [each["users"] for each in coverage["left_out"]]
    assert lost == ([7, 12 - users] if few else [7])
    lost = 20 - users, 3_100 - reviews
    left_out = (
        f"{5 * lost[0]} % of the users ({lost[0]} of 20 read) and {lost[1] / 40:.0f} % of the"
    )
    left_out += f" reviews ({lost[1]:,} of 4,000 read)"
    for form in (terminal, markdown, latex, page):
        text = " ".join(re.sub(r"\\|&nbsp;", " ", form(found)).split())
        assert f"{left_out} left out" in text, form.__name__
        assert f"{users} users, {reviews:,} reviews scored" in text
    assert f"{users} of 20 users and {reviews:,} of 4,000 reviews are compared" in text
    assert "Never scored: the first of their card (900)" in text


@pytest.mark.slow
def test_the_table_compiles_and_fits_the_page(told, tmp_path):
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("needs pdflatex: apt-get install texlive-latex-recommended")
    text = latex(told(" ".join(TWO)))
    (tmp_path / "comparison.tex").write_text(text)
    packages, *_ = text.removeprefix("% needs ").splitlines()
    document = ["\\documentclass{article}", packages, "\\begin{document}"]
    document += ["\\input{comparison}", "\\end{document}"]
    (tmp_path / "main.tex").write_text("\n".join(document))
    words = [compiler, "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = process(words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout
