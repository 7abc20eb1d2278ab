"""The files of a comparison: chosen tables, equal bytes, pages that open without a complaint."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from drawings import told

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report import html
from srs_eval.comparison.report.files import latex, write_files
from srs_eval.comparison.report.html import page, write_html
from srs_eval.results.run import load_run
from srs_eval.text.pages import SORT_SCRIPT

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)


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
    told_of_all = "\n".join(f"# {alt}\n{told(figure)}" for alt, figure in drawn)
    golden_text("comparison_figures", told_of_all)


def test_few_of_many_runs_are_drawn_user_by_user(make_run, drawn):
    runs = [load_run(make_run(f"run{n}", [1, 2], shift=n / 10)) for n in range(14)]
    for number in (14, 13):
        drawn.clear()
        text = page(compare(runs[:number]))
        assert sum("user by user" in alt for alt, _ in drawn) == 12
        assert ("the best 12 of" in text) == (number == 14)


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
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout


@pytest.mark.slow
def test_equal_runs_give_equal_files(pairwise, tmp_path):
    for name in ("a", "b"):
        write_files(pairwise, tmp_path / name)
        write_html(pairwise, tmp_path / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")
def test_the_page_opens_without_a_complaint_and_fits_its_window(pairwise, tmp_path):
    script = ROOT / "docs" / "make_screenshots.py"
    specification = importlib.util.spec_from_file_location("make_screenshots", script)
    screenshots = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(screenshots)
    place = write_html(pairwise, tmp_path)
    with screenshots.Browser(width=1200) as browser:
        complaints = []
        # made for MLflow's pages: it complains itself where there is no storage
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier="1")
        browser.call("Log.enable")
        browser.call("Runtime.enable")
        listen = browser._next_message

        def heard():
            message = listen()
            if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                complaints.append(message["params"])
            return message

        browser._next_message = heard
        browser.open(place.as_uri(), "one and two compared", "For how many users")
        pictures = "[...document.images].map(i => i.complete && i.naturalWidth > 0)"
        assert set(browser.evaluate(pictures)) == {True}
        assert browser.evaluate("document.documentElement.scrollWidth") <= 1200
        names = browser.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
        assert [name for name in names if not name.startswith("data:")] == []
        lines = re.findall(r"const (?:isNumber|number) = .*", SORT_SCRIPT.read_text("utf-8"))
        cells = "['7B', '1,234', '<0.0002', '[-0.5, 1]', '4.5-x', '1e-10']"
        found = browser.evaluate(
            f"{{ {' '.join(lines)} {cells}.map(cell => `${{number(cell)}}`) }}"
        )
        assert found == ["NaN", "1234", "0.0002", "-0.5", "NaN", "1e-10"]
        assert complaints == []
