"""What comparisons say, in every format, and the files they write."""

import html as entities
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import process
from drawings import told
from matplotlib.figure import Figure
from srs_eval.comparison.report.files import (
    as_json,
    csv_text,
    latex,
    markdown,
    terminal_text,
)
from srs_eval.comparison.report.html import figures, page
from srs_eval.comparison.report.words import level_text, share_interval
from srs_eval.comparison.standing import Answer

from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import read_entry
from srs_eval.comparison.report import html, plots
from srs_eval.comparison.sweep import compare_jobs


def judged(*folders, **options):
    return compare([read_entry(folder) for folder in folders], **options)


def standings(folders, folder, *, report=False):
    return compare_jobs(folders, folder, report=report, command="srs_eval -m")


TWO = ("a", "|", "b", "blur=1")


def test_it_is_said_in_the_words_of_the_file_and_in_every_format(
    runs_in_words, transcript, page_without_images
):
    def told_by(*words):
        folders, options = runs_in_words(*words)
        published, runs = options.pop("published", []), [*map(read_entry, folders)]
        for name in published:  # the second, under other names and without its predictions
            bare = {"place": Path("nowhere"), "rows": dict.fromkeys(runs[0].rows, "")}
            runs.append(replace(runs[1], name=name, **bare))
        verdict = compare(runs[:1] + runs[2:] if published else runs, **options)
        notes = as_json(verdict)["notes"]
        for form in (markdown, latex, page):
            written = entities.unescape(form(verdict)).replace("\\", "")
            assert [note for note in notes if note not in written] == [], form.__name__
        assert all(note in csv_text(verdict).replace('""', '"') for note in verdict.notes)
        text = terminal_text(verdict)
        others = [f"({note})" for note in notes if note not in " ".join(text.split())]
        return "\n".join([text, *others, ""])

    transcript("comparison_sentences", told_by)


def test_the_leaderboards_of_sweeps_are_those_of_the_file(runs_in_words, transcript, tmp_path):
    def told_by(*words):
        found = standings(runs_in_words(*words)[0], tmp_path / "sweep")
        return "\n".join([*(each.text or each.problem for each in found), ""])

    transcript("comparison_sweeps", told_by)


def test_the_files_of_a_sweep_lie_beside_its_jobs_unless_they_cannot_be_compared(
    runs_in_words, page_without_images, tmp_path
):
    folders, _ = runs_in_words(*TWO)
    (found,) = standings(folders[::-1], tmp_path / "sweep", report=True)
    assert not found.failed
    assert found.table["run"].tolist()[:2] == ["a", "b"]
    assert {file.parent for file in found.files} == {tmp_path / "sweep"}
    assert {file.name for file in found.files} >= {"comparison.json", "report.html"}
    (folders[1] / "scores.parquet").write_bytes(b"damaged")
    (found,) = standings(folders, tmp_path / "sweep")
    assert found.failed
    assert "1_b/scores.parquet: cannot be read" in found.problem.replace("\\", "/")
    assert (found.text, found.files, len(found.table)) == ("", [], 0)


def test_a_choice_by_test_rows_is_warned_of(runs_in_words):
    def warned(*words):
        notes = as_json(judged(*runs_in_words(*words)[0]))["notes"]
        return [note.partition(" were")[0] for note in notes if "same test reviews" in note]

    settings = ["a", "algo=hlr", "|", "b", "algo=hlr", "blur=1", "|", "avg", "algo=avg"]
    assert warned(*settings) == ["2 settings of hlr"]
    assert warned(*settings, "|", "c", "algo=hlr", "shift=1") == ["3 settings of hlr"]
    for apart in ("is_validation=true", "in_sample=true", "protocol=prequential"):
        assert warned("a", "algo=hlr", "|", "b", "algo=hlr", "blur=1", apart) == []


def test_a_copy_has_the_rows_of_its_twin_in_files_and_changes_nothing(runs_in_words):
    copied, _ = runs_in_words(*TWO, "fits=15", "fallback=14", "folder=first", "copy=copy")
    verdict, alone = judged(*copied), judged(*runs_in_words(*TWO)[0])
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
        assert ("14 fell back, of 15 fits" in caption) == (
            "\\S{}" in rows.partition("\\midrule")[2]
        )
    for _, _, figure in figures(verdict):
        words = " ".join(" ".join(text.get_text() for text in figure.texts).split())
        assert "14 fell back, of 15 fits" in words
        assert "b (copy) makes the same predictions as b (first)" in words


def test_the_bias_at_retention_says_over_how_many_users_it_is(make_run, runs_in_words):
    name = "threshold_bias_at_0_9"
    words = f'a users=[1,2] scores={{"{name}":[0.02,NaN]}} | b users=[1,2] scores={{"{name}":NaN}}'
    folders, _ = runs_in_words(*words.split(), "blur=1")
    assert judged(*folders, make_run("bare", [1, 2], blur=2)).at_retention is None
    first, second, *_ = as_json(judged(*folders))["leaderboard"]
    assert (first[name], first[f"{name}_users"], second[f"{name}_users"]) == (0.02, 1, 0)
    assert np.isnan(second[name])


def test_levels_have_digits_where_they_are_adjusted():
    answers = [Answer("worse", 0.001, factor, 0.0, 1.0) for factor in (1, 2, 10_000)]
    assert [level_text(each) for each in answers] == ["99 %", "99.50 %", ">99.99 %"]
    assert share_interval(0.50004, 0.7) == "50.004 % to 70.000 %"  # above one half


def test_predictions_are_not_read_for_the_sweep_of_several_users(runs_in_words):
    folders, _ = runs_in_words(*TWO)
    for folder in folders:
        (folder / "predictions.parquet").write_bytes(b"damaged")
    assert terminal_text(judged(*folders))


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
    verdict = compare([read_entry(folder) for folder in folders], baseline="blurred")
    body = page(verdict, command="compare a b").partition("<h1>")[2]
    golden_text("comparison_page", re.sub("(<(?:h|tr|p|li|sec|foot)[ >])", r"\n\1", body))
    assert sum("user by user" in alt for alt, _ in drawn) == 3
    told_of_all = "\n".join(f"# {alt}\n{told(figure)}" for alt, figure in drawn)
    golden_text("comparison_figures", told_of_all)


@pytest.mark.slow
def test_the_tables_compile_and_fit_the_page(runs_in_words, tmp_path):
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("needs pdflatex: apt-get install texlive-latex-recommended")
    tables = latex(judged(*runs_in_words(*TWO)[0]))
    (tmp_path / "comparison.tex").write_text(tables)
    packages, *_ = tables.removeprefix("% needs ").splitlines()
    document = ["\\documentclass{article}", packages, "\\begin{document}"]
    document += ["\\input{comparison}", "\\end{document}"]
    (tmp_path / "main.tex").write_text("\n".join(document))
    words = [compiler, "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = process(words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout


def test_differences_that_are_far_off_do_not_flatten_the_others():
    near = [(-0.007, -0.02, 0.01), (0.0, -0.02, 0.03), (0.01, np.nan, np.nan)]
    for far, end in ((1.4, 1), (-1.4, 0)):
        axes = Figure().add_subplot()
        drawn = [*near, (far, far - 0.5, far + 0.5)]
        for row, values in enumerate(drawn):
            axes.plot(values, [row] * 3)
        plots._leave_far_ones_out(axes, drawn)
        assert 0.05 < abs(axes.get_xlim()[end]) < 0.15
        (text,) = axes.texts
        assert f"{far:+.2f}" in text.get_text()
        assert text.get_position()[1] == 3
    axes = Figure().add_subplot()
    axes.plot([-5, 5], [0, 0])
    before = axes.get_xlim()
    for alike in ([], near[:2], [(0.0, 0.0, 0.0)]):
        plots._leave_far_ones_out(axes, alike)
    assert axes.get_xlim() == before
