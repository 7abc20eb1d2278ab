"""What comparisons say, in every format, and the files they write."""

import html as entities
import re
import shutil
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import process, write
from drawings import told

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report import html
from srs_eval.comparison.report.files import (
    as_json,
    csv_text,
    latex,
    markdown,
    terminal_text,
)
from srs_eval.comparison.report.html import figures, page
from srs_eval.comparison.report.sweep import sweep_texts
from srs_eval.comparison.report.tables import beside
from srs_eval.comparison.report.words import level_text
from srs_eval.comparison.selection import selection_notes
from srs_eval.comparison.standing import Answer
from srs_eval.results.run import load_run


def judged(*folders, **options):
    return compare([load_run(folder) for folder in folders], **options)


def two(run, *users, second=None, **options):
    """Two runs that differ, of which the second has options of its own."""
    return run("a", *users, **options), run("b", *users, blur=1, **{**options, **(second or {})})


def told_of(cases, make_run, tell):
    """Tell of each case, whose runs are in a folder of their own."""
    told = []
    for number, (name, call) in enumerate(cases.items()):

        def run(label, *users, folder=None, number=number, **options):
            return make_run(label, *users, folder=f"{number}/{folder or label}", **options)

        told.append("\n".join([f"=== {name}", *tell(call(run)), ""]))
    return "\n".join(told)


def put(folder, without=(), **metrics):
    """Set metrics of the scores of a run, and leave others out."""
    file = folder / "scores.parquet"
    pd.read_parquet(file).assign(**metrics).drop(columns=[*without]).to_parquet(file)
    return folder


def doubtful(run):
    """A leader that a constant beats, and an average that was certain and wrong."""
    entropy, bias, wrong = "normalized_entropy", "threshold_bias_at_0_9", "log_loss_certain_wrong"
    metrics = (
        {"log_loss": [0.3, 0.31], entropy: [1.05, 1.07], wrong: [0, 0], bias: [0.02, np.nan]},
        {"log_loss": [0.7, 0.6], entropy: [2.5, 2.7], wrong: [1, 1], bias: [np.nan, np.nan]},
    )
    folders = without_predictions(two(run, [1, 2]))
    for folder, columns, area in zip(folders, metrics, (0.6, 1.0), strict=True):
        put(folder, **columns, auc=area)
    return folders


def without_predictions(folders):
    for folder in folders:
        (folder / "predictions.parquet").unlink()
    return folders


def beside_published(run):
    own, other = map(load_run, two(run))
    bare = replace(other, place=Path("nowhere"), rows=dict.fromkeys(own.rows, ""))
    return compare([own, replace(bare, name="theirs"), replace(bare, name="again")])


def copied(run):
    first = run("b", blur=1, fits=15, fallback=14, folder="first")
    copy = copytree(first, first.parent / "copy")
    return judged(run("a"), first, copy)


NO_INTERVAL = {"metrics": {"log_loss": {"lo": None, "hi": None}}}
SAID = {
    "one run alone": lambda run: judged(run("oracle", sees_truth=True, when="at_review")),
    "higher is better": lambda run: judged(*two(run, only_recalled=[3]), metric="auc"),
    "one user": lambda run: judged(*two(run, [1])),
    "one user without predictions": lambda run: judged(
        *without_predictions(two(run, [1], **NO_INTERVAL))
    ),
    "one user without predictions of one run": lambda run: judged(
        run("a", [1], **NO_INTERVAL), *without_predictions([run("b", [1], blur=1, **NO_INTERVAL)])
    ),
    "one user by another metric": lambda run: judged(*two(run, [1]), metric="auc"),
    "0 is best": lambda run: judged(
        *(put(folder, mbe=[0.4, -0.01] * 6) for folder in two(run)), metric="mbe"
    ),
    "one user of two": lambda run: judged(*two(run, [1, 2], failed=[2], **NO_INTERVAL)),
    "one user who has the metric": lambda run: judged(
        *two(run, [1, 2], only_recalled=[2]), metric="auc"
    ),
    "users who failed alike": lambda run: judged(*two(run, failed=[2, 5])),
    "in common": lambda run: judged(
        run("a"), run("b", range(1, 12), blur=1, failed=[7]), intersect=True
    ),
    "one user left of several": lambda run: judged(
        run("a", [12, 1]), run("b", [12], blur=1), intersect=True
    ),
    "users without reviews in common, and a failed fold": lambda run: judged(
        run("a", rows={3: slice(0, 40), 7: slice(0, 30)}),
        run("b", blur=1, rows={3: slice(40, None), 7: slice(30, None)}, failed=[9]),
        intersect=True,
    ),
    "reviews in common, and a metric that predictions do not tell": lambda run: judged(
        put(run("a", rows={4: slice(0, 100)}), rmse=[0.25, 0.3] * 6),
        put(run("b", rows={4: slice(30, None)}, blur=1), rmse=[0.3, 0.33] * 6),
        metric="rmse",
        intersect=True,
    ),
    "reviews in common without predictions": lambda run: judged(
        run("a", rows={4: slice(0, 100)}),
        *without_predictions([run("b", rows={4: slice(30, None)}, blur=1)]),
        intersect=True,
    ),
    "a run without the metric": lambda run: judged(
        *two(run, when="at_review"), put(run("c", blur=0.8), ["log_loss"])
    ),
    "several protocols": lambda run: judged(*two(run, second={"protocol": "other"}), baseline="b"),
    "published scores": beside_published,
    "a copy": copied,
    "times and runs that do not count": lambda run: judged(
        *two(run, when="day_before"),
        run("oracle", sees_truth=True, when="at_review"),
        run("current", in_sample=True),
        run("old", when="unknown", fits=3, failed_fits=1),
    ),
    "no run is eligible": lambda run: judged(
        run("current", in_sample=True), run("other", in_sample=True, blur=3)
    ),
    "fits that fell back": lambda run: judged(
        *two(run, fits=9, second={"fits": 60, "fallback": 7, "not_converged": 2})
    ),
    "doubtful": lambda run: judged(*doubtful(run)),
}


def test_it_is_said_in_the_words_of_the_file_and_in_every_format(
    make_run, golden_text, page_without_images
):
    def tell(verdict):
        notes = as_json(verdict)["notes"]
        for form in (terminal_text, markdown, latex, page):
            written = entities.unescape(form(verdict)).replace("\\", "")
            assert [note for note in notes if note not in written] == [], form.__name__
        assert all(note in csv_text(verdict).replace('""', '"') for note in verdict.notes)
        text = terminal_text(verdict)
        if verdict.at_retention:
            text = markdown(verdict).partition("## Where they come from")[0]
        yield text.strip()

    golden_text("comparison_sentences", told_of(SAID, make_run, tell))


SWEEPS = {
    "better and worse": lambda run: [
        run(name, blur=blur) for name, blur in (("b", 1), ("a", 0), ("c", 0.5))
    ],
    "a run and itself": lambda run: [run("a", [1], folder=f"{n}_a") for n in range(2)],
    "other reviews, and other data": lambda run: (
        run("a", [1, 2]),
        run("b", [1, 2], other_reviews=[1, 2]),
        run("c", [1, 2], blur=1),
        run("d", [1, 2], blur=1, data="anki"),
    ),
    "a failed user": lambda run: two(run, [1, 2, 3], second={"failed": [2]}),
    "users shared in pairs only": lambda run: [
        run(name, users, blur=users[0] + 0.3 * users[1])
        for name, users in (("a", (1, 2)), ("b", (2, 3)), ("c", (1, 3)))
    ],
    "few users": lambda run: (run("most", [1, 2, 3]), run("few", [1])),
    "no user": lambda run: [run("a", [1], failed=[1])],
    "one without log loss": lambda run: (put(run("a"), ["log_loss"]), run("b", blur=1)),
    "none with log loss": lambda run: [put(folder, ["log_loss", "auc"]) for folder in two(run)],
    "one without another metric": lambda run: (run("a"), put(run("b", blur=1), ["auc"])),
    "no metric": lambda run: [put(run("a"), ["log_loss", "auc", "brier"])],
}


def test_the_leaderboards_of_sweeps_are_those_of_the_file(make_run, golden_text):
    golden_text("comparison_sweeps", told_of(SWEEPS, make_run, sweep_texts))


def with_command(folder, *words, **options):
    files = {"overrides": list(words), "config": options}
    write(folder / ".hydra", {f"{name}.yaml": yaml.safe_dump(files[name]) for name in files})
    return folder


MINE = ("algo=hlr", "data.path=my deck.colpkg")
CODE = ("algo._target_=os.system", "data={_target_:os.system}", "a\nb=c", 7, "hydra.run.dir=x")
REFIT = {"_target_": "srs_eval.protocol.srs_benchmark.SrsBenchmark", "refits": 2}
CHOSEN = {
    "options": lambda run: (
        with_command(run("a", algo="hlr"), *MINE, algo={"fit": "newton", "warm": True}),
        with_command(run("b", algo="hlr"), *MINE, "algo.fit=reference", "algo.warm=false"),
        with_command(run("c", algo="hlr"), *MINE, "seed=3"),
        run("avg", algo="avg"),
    ),
    "under another protocol": lambda run: [
        with_command(run(name, algo="hlr", protocol="refit"), protocol=REFIT) for name in "ab"
    ],
    "under the protocol of others": lambda run: [
        with_command(run(n, algo="hlr", protocol="x"), protocol={"_target_": "os.x"}) for n in "ab"
    ],
    "under an unknown protocol": lambda run: [run(n, algo="hlr", protocol="x") for n in "ab"],
    "under two protocols": lambda run: [
        run(name, algo="hlr", protocol=name) for name in ("srs_benchmark", "prequential")
    ],
    "what is built": lambda run: [with_command(run(n, algo="hlr"), *CODE) for n in "ab"],
    "before the test rows": lambda run: [run(n, algo="hlr", is_validation=True) for n in "ab"],
    "with one that may know the log": lambda run: (
        run("a", algo="fsrs6"),
        run("b", algo="fsrs6", in_sample=True),
    ),
}


def test_a_choice_by_test_rows_is_warned_of_with_a_command(make_run, golden_text):
    def tell(folders):
        return selection_notes([load_run(folder) for folder in folders])

    golden_text("comparison_selection", told_of(CHOSEN, make_run, tell))
    verdict = judged(*two(make_run, algo="hlr"))
    assert as_json(verdict)["options_compared_on"] == "test_rows"


def test_another_metric_says_of_how_many_users_it_is_where_they_are_fewer(make_run):
    assert "auc" in beside(judged(*two(make_run))).headers
    assert "auc (11 users)" in beside(judged(*two(make_run, only_recalled=[3]))).headers


def test_a_copy_has_the_rows_of_its_twin_in_files_and_changes_nothing(make_run):
    verdict, alone = copied(make_run), judged(*two(make_run))
    assert [str(one.average) for one in verdict.leaderboard.to_best] == [
        str(one.average) for one in alone.leaderboard.to_best
    ]
    of_two = [title for title, *_ in figures(alone)]
    assert of_two == ["Against the baseline", "Where they differ"]
    rows = as_json(verdict)["leaderboard"]
    bad, copy = (row for row in rows if "b " in row["run"] and row["weighting"] == "users")
    assert {name for name in bad if copy[name] != bad[name]} == {"run", "identical_to"}
    assert copy["identical_to"] == bad["run"] == "b (first)"
    assert (bad["fits"], bad["fallback"], rows[0]["fits"]) == (15, 14, None)
    assert [run["identical_to"] for run in as_json(verdict)["runs"]] == [None, None, "b (first)"]
    for table in latex(verdict).split("\\caption{")[1:]:
        caption, rows = table.split("\\label", 1)
        assert ("14 of 15 fits fell back" in caption) == ("\\S{}" in rows.partition("\\midrule")[2])
    for _, _, figure in figures(verdict):
        words = " ".join(text.get_text() for text in figure.texts)
        assert "14 of 15 fits fell back" in words
        assert "b (copy) makes the same predictions as b (first)" in words


def test_the_bias_at_retention_says_over_how_many_users_it_is(make_run):
    name = "threshold_bias_at_0_9"
    folders = doubtful(make_run)
    assert judged(*folders, make_run("bare", [1, 2], blur=2)).at_retention is None
    first, second, *_ = as_json(judged(*folders))["leaderboard"]
    assert (first[name], first[f"{name}_users"], second[f"{name}_users"]) == (0.02, 1, 0)
    assert np.isnan(second[name])


def test_levels_have_digits_where_they_are_adjusted():
    answers = [Answer("worse", 0.001, factor, 0.0, 1.0) for factor in (1, 2, 10_000)]
    assert [level_text(each) for each in answers] == ["99 %", "99.50 %", ">99.99 %"]


def test_predictions_are_not_read_for_the_sweep_of_several_users(make_run):
    folders = two(make_run)
    for folder in folders:
        (folder / "predictions.parquet").write_bytes(b"damaged")
    assert len(sweep_texts(folders)) == 1


@pytest.fixture
def pairwise(make_run):
    return compare([load_run(make_run("one")), load_run(make_run("two", blur=1))])


def labels(text):
    return re.findall(r"\\label\{tab:(\w+)\}", text)


def test_tables_for_a_paper_are_chosen_by_their_labels(pairwise):
    every = labels(latex(pairwise))
    for names, chosen in (
        (["leaderboard_users"], ["leaderboard_users"]),
        (["ranks", "leaderboard_reviews"], ["leaderboard_reviews", "ranks"]),
        (["against_baseline"], ["against_baseline"]),
        (["against"], ["against_baseline", "against_baseline_majority"]),
        (every, every),
    ):
        assert labels(latex(pairwise, names)) == chosen


@pytest.fixture
def drawn(monkeypatch):
    """Descriptions of the images of pages, and what is in them, which are not drawn."""
    images = []
    monkeypatch.setattr(
        html, "_image", lambda figure, alt: images.append((alt, figure)) or (alt, "")
    )
    return images


def test_the_page_and_its_figures_are_those_of_the_files(make_run, golden_text, drawn):
    folders = [
        make_run("plain", fits=9, fallback=1),
        make_run("blurred", blur=1),
        make_run("session", shift=0.3, when="at_review"),
        make_run("current", shift=-1, in_sample=True),
    ]
    verdict = compare([load_run(folder) for folder in folders], baseline="blurred")
    body = page(verdict, command="compare a b").partition("<h1>")[2]
    golden_text("comparison_page", re.sub("(<(?:h|tr|p|li|sec|foot)[ >])", r"\n\1", body))
    assert sum("user by user" in alt for alt, _ in drawn) == 3
    told_of_all = "\n".join(f"# {alt}\n{told(figure)}" for alt, figure in drawn)
    golden_text("comparison_figures", told_of_all)


@pytest.mark.slow
def test_the_tables_compile_and_fit_the_page(pairwise, tmp_path):
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("needs pdflatex: apt-get install texlive-latex-recommended")
    (tmp_path / "comparison.tex").write_text(latex(pairwise))
    packages, *_ = latex(pairwise).removeprefix("% needs ").splitlines()
    document = ["\\documentclass{article}", packages, "\\begin{document}"]
    document += ["\\input{comparison}", "\\end{document}"]
    (tmp_path / "main.tex").write_text("\n".join(document))
    words = [compiler, "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = process(words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout
