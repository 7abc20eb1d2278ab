"""Facts of runs that every table must show: fallbacks, identical models, choices by test rows."""

from __future__ import annotations

import csv
import io
import shlex
import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml

from srs_eval.comparison.compare import compare
from srs_eval.comparison.identical import find_duplicates
from srs_eval.comparison.report.files import as_json, csv_text, latex, markdown, terminal_text
from srs_eval.comparison.report.html import figures, page
from srs_eval.comparison.selection import (
    chosen_on_test_rows,
    selection_notes,
    sweeps_settings,
)
from srs_eval.results.fit_counts import MARK, FitCounts, explained_counts
from srs_eval.results.run import Run, load_run


def of_sweep(verdict):
    return terminal_text(verdict, of_sweep=True)


pytestmark = pytest.mark.usefixtures("page_without_images")
TEXTS = (terminal_text, of_sweep, markdown, latex, page)


def judged(*folders, **options):
    return compare([load_run(folder) for folder in folders], **options)


@pytest.fixture
def fell_back(make_run):
    """A model, one that fell back to it in 14 of 15 fits, and a worse one."""
    return (
        make_run("fsrs6", folder="0_fsrs6", fits=15, fallback=0),
        make_run("group", folder="1_group", fits=15, fallback=14, not_converged=2),
        make_run("other", folder="2_other", fits=15, blur=0.5),
    )


def test_counts_are_said_in_words():
    counts = FitCounts(fits=145, fallback=140, failed=1, not_converged=2)
    assert counts.in_words == "140 of 145 fits fell back, 1 failed, 2 did not converge"
    assert FitCounts(failed=1).in_words == "1 fit failed"
    assert FitCounts(fits=3).in_words == ""
    assert not FitCounts(fits=3).has_exceptions


def test_counts_that_all_runs_share_are_said_once():
    runs = [(name, FitCounts(fits=9, skipped=2)) for name in "abc"]
    assert explained_counts(runs).endswith("every run: 2 of 9 fits skipped")


def test_fallbacks_show_in_every_output(make_run):
    verdict = judged(make_run("a"), make_run("b", blur=0.5, fits=60, fallback=7))
    for form in TEXTS:
        assert "7 of 60 fits fell back" in form(verdict), form.__name__
    assert latex(verdict).count("7 of 60 fits fell back") > 3  # in captions, not only comments
    for table in markdown(verdict).split("\n## ")[1:]:
        rows = [line for line in table.splitlines() if line.startswith(("| b ", "| **b "))]
        assert all(MARK in row for row in rows)
    rows = list(csv.DictReader(io.StringIO(csv_text(verdict))))
    assert {(row["run"], row["fits"], row["fallback"]) for row in rows} == {
        ("a", "", ""),
        ("b", "60", "7"),
    }
    fits = {run["name"]: run["fits"]["fallback"] for run in as_json(verdict)["runs"]}
    assert fits == {"a": None, "b": 7}
    for _, _, figure in figures(verdict):
        assert "7 of 60 fits fell back" in " ".join(text.get_text() for text in figure.texts)


@pytest.mark.slow
def test_a_model_under_two_names_counts_once_and_is_said_to_be_identical(fell_back):
    verdict = judged(*fell_back)
    assert [run.name for run in verdict.runs] == ["fsrs6", "other"]
    for form in TEXTS:
        assert "group makes the same predictions as fsrs6" in form(verdict), form.__name__
        assert "identical to fsrs6" in form(verdict)
        assert "14 of 15 fits fell back" in form(verdict)
    without = judged(fell_back[0], fell_back[2])
    for found, expected in zip(
        verdict.leaderboard.to_best, without.leaderboard.to_best, strict=True
    ):
        assert found.average == expected.average or np.isnan(found.average.p_value)
    assert verdict.mean_ranks.tolist() == without.mean_ranks.tolist()
    rows = list(csv.DictReader(io.StringIO(csv_text(verdict))))
    assert {row["identical_to"] for row in rows if row["run"] == "group"} == {"fsrs6"}
    assert {row["mean"] for row in rows if row["run"] == "group" and row["weighting"] == "users"}
    assert [run["identical_to"] for run in as_json(verdict)["runs"]] == [None, None, "fsrs6"]


def test_a_copy_of_a_worse_run_is_worse_in_the_rows_of_files(make_run):
    worse = make_run("bad", blur=0.5)
    verdict = judged(make_run("good"), worse, shutil.copytree(worse, worse.parent / "copy"))
    rows = [*csv.DictReader(io.StringIO(csv_text(verdict)))]
    bad, copy = (row for row in rows if "bad" in row["run"] and row["weighting"] == "users")
    assert copy["identical_to"] == bad["run"]
    for column in ("to_best", "to_best_p", "to_best_verdict", "to_best_users_verdict"):
        assert copy[column] == bad[column], column
    assert "<h1>3 runs compared</h1>" in page(verdict)


def test_a_baseline_that_is_identical_to_another_run_is_that_run(fell_back):
    verdict = judged(*fell_back, baseline="group")
    assert verdict.runs[verdict.baseline].name == "fsrs6"


def test_equal_scores_of_other_predictions_are_not_identical(make_run):
    first, second = (load_run(make_run(name)) for name in ("aa", "bb"))
    users = list(first.rows)
    assert [one.twin.name for one in find_duplicates([first, second], users)] == ["aa"]
    moved = load_run(make_run("cc", shift=1e-9))
    scores = {name: first.scores[name] for name in moved.scores}
    forged = replace(moved, scores=scores)
    assert find_duplicates([first, forged], users) == []


def test_published_scores_are_identical_only_in_several_metrics(tmp_path):
    users = [1, 2, 3]

    def published(name, **scores):
        columns = {metric: np.array(values) for metric, values in scores.items()}
        return Run(name, tmp_path, dict.fromkeys(users, ""), dict.fromkeys(users, 9), columns)

    losses, areas = [0.1, 0.2, 0.3], [0.7, np.nan, 0.6]
    first = published("a", log_loss=losses, auc=areas)
    (found,) = find_duplicates([first, published("b", log_loss=losses, auc=areas)], users)
    assert found.in_words == (
        "b has the scores of a in every metric and for every user; both count as one"
    )
    assert find_duplicates([first, published("b", log_loss=losses)], users) == []
    others = published("b", log_loss=losses, auc=[0.7, np.nan, 0.61])
    assert find_duplicates([first, others], users) == []
    nowhere = [np.nan] * 3
    first, second = (published(n, log_loss=losses, auc=areas, mbe=nowhere) for n in "ab")
    assert [each.run.name for each in find_duplicates([first, second], users)] == ["b"]
    first, second = (published(n, log_loss=losses, mbe=nowhere) for n in "ab")
    assert find_duplicates([first, second], users) == []


def test_reviews_are_those_of_the_users_who_have_the_score(make_run):
    folders = [make_run(n, blur=b, only_recalled=range(3, 13)) for n, b in (("a", 0), ("b", 1))]
    verdict = judged(*folders, metric="auc")
    reviews = sum(load_run(folders[0]).reviews[user] for user in (1, 2))
    assert verdict.leaderboard.n_users == 2
    for form in TEXTS:
        assert f"{reviews:,} " in form(verdict), form.__name__
    assert as_json(verdict)["reviews"] == reviews


def with_command(folder, *words, **options):
    (folder / ".hydra").mkdir()
    (folder / ".hydra" / "overrides.yaml").write_text(yaml.safe_dump(list(words)))
    (folder / ".hydra" / "config.yaml").write_text(yaml.safe_dump(options))
    return folder


def test_settings_of_one_algorithm_on_test_rows_are_warned_of_with_a_command(make_run):
    mine = "data.path=my deck.colpkg"
    folders = [
        with_command(make_run("a", algo="hlr"), "algo=hlr", mine, algo={"fit": "newton"}),
        with_command(
            make_run("b", algo="hlr", blur=0.4), "algo=hlr", mine, "algo.fit=reference", "seed=3"
        ),
        make_run("c", algo="avg", blur=0.6),
    ]
    runs = [load_run(folder) for folder in folders]
    assert {algo: len(group) for algo, group in chosen_on_test_rows(runs).items()} == {"hlr": 2}
    (note,) = selection_notes(runs)
    command = shlex.split(note.partition("python ")[2])
    assert command[:3] == ["-m", "srs_eval", "-m"]
    assert set(command[3:]) == {
        "algo=hlr",
        mine,
        "algo.fit=newton,reference",
        "seed=3",
        "protocol=validation",
    }
    verdict = judged(*folders)
    for form in TEXTS:
        assert "protocol=validation" in form(verdict), form.__name__
    assert as_json(verdict)["options_compared_on"] == "test_rows"


def test_settings_scored_before_the_test_rows_need_no_warning(make_run):
    runs = [
        load_run(make_run(name, algo="hlr", is_validation=True, shift=0.1 * n))
        for n, name in enumerate("ab")
    ]
    assert selection_notes(runs) == []


def test_parameters_that_may_know_the_whole_log_are_not_to_be_chosen_before_the_test_rows(make_run):
    runs = [
        load_run(make_run("a", algo="fsrs6", blur=0.4)),
        load_run(make_run("b", algo="fsrs6", in_sample=True)),
    ]
    assert selection_notes(runs) == []


def test_a_suggested_command_never_names_what_is_built(make_run):
    words = "algo._target_=os.system", "data={_target_:os.system}", "a\nb=c", 7, "hydra.run.dir=x"
    runs = [
        load_run(with_command(make_run(name, algo="hlr", shift=shift), *words))
        for name, shift in (("a", 0.0), ("b", 0.1))
    ]
    (note,) = selection_notes(runs)
    assert note.endswith(": python -m srs_eval -m algo=hlr protocol=validation")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("algo.fit=newton,reference", True),
        ("seed=range(5)", True),
        ("+algo.x=choice(1,2)", True),
        ("algo=fsrs6,hlr", False),
        ("algo.hidden=[4,8]", False),
        ("algo.hidden=[4,8],[2]", True),
        ("algo.name='a,b'", False),
        ("data.users=1,2", False),
    ],
)
def test_a_grid_over_settings_is_known_by_its_words(tmp_path, word, expected):
    words = {"hydra": {"overrides": {"task": ["tracking=none", word]}}}
    (tmp_path / "multirun.yaml").write_text(yaml.safe_dump(words))
    assert sweeps_settings(tmp_path) is expected
