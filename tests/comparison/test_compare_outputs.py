"""A comparison in every format: the same numbers, escaped names, and nothing left unsaid."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report.files import (
    as_json,
    csv_text,
    latex,
    markdown,
    terminal_text,
    write_files,
)
from srs_eval.comparison.report.html import page, write_html
from srs_eval.comparison.report.tables import tables
from srs_eval.results.files import SCORES, SUMMARY, write_json, write_table
from srs_eval.results.run import load_run
from srs_eval.text.pages import SORT_SCRIPT

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
NASTY = '<script>alert(1)</script> & 50% of_it \\ [x](javascript:1) | `a` "q"'


@pytest.fixture
def make_scores(tmp_path):
    """Write a run without predictions: users, log losses, sizes."""

    def make(label, losses, *, rows="same", **summary):
        place = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        place.mkdir()
        users = list(range(1, len(losses) + 1))
        columns = {
            "user": users,
            "reviews": [100 * user for user in users],
            "rows": [f"{rows}{user}" for user in users],
            "log_loss": losses,
        }
        write_table(place / SCORES, pa.table(columns))
        content = {
            "label": label,
            "data": "made up",
            "protocol": "p",
            "failed": 0,
            "when": "previous_review",
        }
        write_json(place / SUMMARY, {**content, **summary})
        return place

    return make


def judged(*folders, **options):
    return compare([load_run(folder) for folder in folders], **options)


@pytest.fixture
def pairwise(make_scores):
    losses = np.random.default_rng(0).uniform(0.2, 0.5, 20)
    extra = np.random.default_rng(1).normal(0.03, 0.02, 20)
    folders = make_scores("one", losses), make_scores("two", losses + extra)
    return folders, judged(*folders)


class Strict(HTMLParser):
    """Notes tags, and what the page would fetch."""

    def __init__(self):
        super().__init__()
        self.tags, self.fetched, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.fetched += [
            v for k, v in attrs if k in ("src", "href") and not v.startswith(("#", "data:"))
        ]
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_names_cannot_break_out_of_any_format(make_scores):
    verdict = judged(make_scores(NASTY, [0.3] * 6), make_scores("plain", [0.4] * 6))
    parsed = Strict()
    parsed.feed(page(verdict, command=NASTY))
    assert parsed.tags.count("script") == 1  # our own, which the page allows by its digest
    assert parsed.open == []
    assert "<script" not in markdown(verdict)
    assert "](javascript" not in markdown(verdict)
    widths = {
        len(re.findall(r"(?<!\\)\|", line))
        for line in markdown(verdict).splitlines()
        if line[:1] == "|"
    }
    assert len(widths) > 1  # tables of several widths, of which none has a row that is wider
    for line in latex(verdict).splitlines():
        assert line.startswith("%") or not re.search(r"(?<!\\)[%#$](?!\\geq)", line)
    assert json.loads(json.dumps(as_json(verdict)))["runs"][0]["name"] == NASTY


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["leaderboard_users"], ["leaderboard_users"]),
        (["ranks", "leaderboard_reviews"], ["leaderboard_reviews", "ranks"]),
        (["against_baseline"], ["against_baseline"]),
        (["against"], ["against_baseline", "against_baseline_majority"]),
    ],
)
def test_tables_for_a_paper_are_chosen_by_their_labels(pairwise, names, labels):
    every = [table.key for table in tables(pairwise[1])]
    found = re.findall(r"\\label\{tab:(\w+)\}", latex(pairwise[1], names))
    assert found == labels
    assert re.findall(r"\\label\{tab:(\w+)\}", latex(pairwise[1])) == every


@pytest.mark.slow
def test_the_tables_compile_and_fit_the_page(pairwise, tmp_path):
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("needs pdflatex: apt-get install texlive-latex-recommended")
    (tmp_path / "comparison.tex").write_text(latex(pairwise[1]))
    packages, *_ = latex(pairwise[1]).removeprefix("% needs ").splitlines()
    document = ["\\documentclass{article}", packages, "\\begin{document}"]
    document += ["\\input{comparison}", "\\end{document}"]
    (tmp_path / "main.tex").write_text("\n".join(document))
    words = [compiler, "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout


@pytest.mark.slow
def test_equal_runs_give_equal_files(pairwise, tmp_path):
    verdict = pairwise[1]
    for name in ("a", "b"):
        write_files(verdict, tmp_path / name)
        write_html(verdict, tmp_path / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


@pytest.mark.parametrize("users", [1, 2, 6])
def test_identical_runs_are_shown_without_nonsense(make_scores, users):
    verdict = judged(make_scores("one", [0.3] * users), make_scores("two", [0.3] * users))
    for form in (terminal_text, markdown, latex, page, csv_text):
        text = re.sub(r"base64,[^\"]*", "", form(verdict))
        assert not re.search(r"\b(nan|inf)\b", text, re.IGNORECASE), form.__name__
    assert "0.0000" in terminal_text(verdict)
    json.dumps(as_json(verdict))


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")
def test_the_page_opens_without_a_complaint_and_fits_its_window(pairwise, tmp_path):
    script = ROOT / "docs" / "make_screenshots.py"
    specification = importlib.util.spec_from_file_location("make_screenshots", script)
    screenshots = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(screenshots)
    place = write_html(pairwise[1], tmp_path)
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
