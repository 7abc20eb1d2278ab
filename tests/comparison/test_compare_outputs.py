"""A comparison in every format: the same numbers, escaped names, and nothing left unsaid."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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
from srs_eval.comparison.report.grids import grids
from srs_eval.comparison.report.html import page, write_html
from srs_eval.comparison.report.words import facts_of
from srs_eval.errors import ConfigError
from srs_eval.results.files import SCORES, SUMMARY, write_json, write_table
from srs_eval.results.run import load_run
from srs_eval.text.escapes import SORT_SCRIPT

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


def with_metrics(folder, **columns):
    """Add metrics to the scores of a run."""
    table = pq.read_table(folder / SCORES)
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values, pa.float64()))
    write_table(folder / SCORES, table)
    return folder


@pytest.fixture
def doubtful(make_scores):
    """Compare a leader that a constant beats with an average that was certain and wrong."""
    entropy, bias = "normalized_entropy", "threshold_bias_at_0_9"
    wrong = "log_loss_certain_wrong"
    leader = {entropy: [1.05, 1.07], wrong: [0.0, 0.0], bias: [0.02, None], "auc": [0.6, 0.6]}
    other = {entropy: [2.5, 2.7], wrong: [1.0, 1.0], bias: [None, None], "auc": [1.0, 1.0]}
    return judged(
        with_metrics(make_scores("one", [0.3, 0.31]), **leader),
        with_metrics(make_scores("two", [0.7, 0.6]), **other),
    )


def judged(*folders, **options):
    return compare([load_run(folder) for folder in folders], **options)


@pytest.fixture
def pairwise(make_scores):
    losses = np.random.default_rng(0).uniform(0.2, 0.5, 20)
    extra = np.random.default_rng(1).normal(0.03, 0.02, 20)
    folders = make_scores("one", losses), make_scores("two", losses + extra)
    return folders, judged(*folders)


def test_numbers_of_every_output_are_those_of_the_scores(pairwise):
    folders, verdict = pairwise
    tables = [pq.read_table(folder / SCORES).to_pydict() for folder in folders]
    first, second = (np.array(table["log_loss"]) for table in tables)
    expected = f"{second.mean():.4f}", f"{(second - first).mean():+.4f}"
    texts = [form(verdict) for form in (terminal_text, markdown, latex, page)]
    assert all(number in text for number in expected for text in texts)
    rows = list(csv.DictReader(io.StringIO(csv_text(verdict))))
    two = next(row for row in rows if row["weighting"] == "users" and row["run"] == "two")
    assert float(two["mean"]) == pytest.approx(second.mean())
    assert float(two["to_baseline"]) == pytest.approx((second - first).mean())
    by_review = next(row for row in rows if row["weighting"] == "reviews" and row["run"] == "two")
    weighted = np.average(second, weights=tables[1]["reviews"])
    assert float(by_review["mean"]) == pytest.approx(weighted)
    found = as_json(verdict)
    assert found["baseline"] == "one"
    assert found["superiority"]["one"][1] == np.mean(first < second)


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
    every = [grid.key for grid in grids(pairwise[1])]
    found = re.findall(r"\\label\{tab:(\w+)\}", latex(pairwise[1], names))
    assert found == labels
    assert re.findall(r"\\label\{tab:(\w+)\}", latex(pairwise[1])) == every


def test_a_table_that_there_is_not_is_refused_with_those_that_there_are(pairwise):
    with pytest.raises(ConfigError, match=r"latex=leaderboard_user: .*'leaderboard_users'.*ranks"):
        latex(pairwise[1], ["ranks", "leaderboard_user"])


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
def test_the_page_fetches_nothing(pairwise):
    parsed = Strict()
    parsed.feed(page(pairwise[1]))
    assert parsed.fetched == []
    assert "img" in parsed.tags


def test_a_restriction_is_said_in_every_output(make_scores, tmp_path):
    first = make_scores("one", [0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    second = make_scores("two", [0.3, 0.4, 0.5, 0.6, 0.7])
    verdict = judged(first, second, intersect=True)
    files = [*write_files(verdict, tmp_path / "out"), write_html(verdict, tmp_path / "out")]
    assert {file.name for file in files} == {
        *(f"comparison.{ending}" for ending in ("md", "tex", "csv", "json")),
        "report.html",
    }
    for file in files:
        assert "Restricted to 5 users of 6" in file.read_text(encoding="utf-8"), file.name
    assert "Restricted to 5 users of 6" in terminal_text(verdict)


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


def test_on_one_user_no_test_over_users_is_shown(make_scores):
    text = terminal_text(judged(make_scores("one", [0.3]), make_scores("two", [0.4])))
    assert "better for" not in text
    assert "100.0 %" not in text
    assert "+0.1000" in text


def test_one_run_alone_is_a_table_of_one(make_scores):
    verdict = judged(make_scores("one", [0.3, 0.4]))
    assert "Nothing to compare it with" in terminal_text(verdict)
    assert "Against" not in page(verdict)


def test_the_metric_says_which_way_is_better(make_scores):
    folders = [make_scores("one", [0.3] * 6), make_scores("two", [0.4] * 6)]
    for folder in folders:
        table = pq.read_table(folder / SCORES)
        write_table(folder / SCORES, table.rename_columns([*table.column_names[:-1], "auc"]))
    text = terminal_text(judged(*folders, metric="auc"))
    assert "two predicts best" in text
    assert "higher is better" in text


def test_every_format_says_what_could_mislead(doubtful, page_without_images):
    said = ("two: 2 certain predictions", "two: auc 1.0000", "one (106 % of", "two (260 % of")
    said += ("Where one predicts about 90 ", "over 1 of 2 users")
    for form in (terminal_text, markdown, latex, page):
        text = form(doubtful).replace("\\%", "%").replace("\\_", "_")
        for words in said:
            assert words in text, (form.__name__, words)
    notes = "\n".join(as_json(doubtful)["notes"])
    assert all(words in notes for words in said)
    assert terminal_text(doubtful, of_sweep=True).count("certain predictions") == 1


def test_a_leader_that_a_constant_beats_does_not_just_lead(doubtful, make_scores):
    for text in (terminal_text(doubtful), as_json(doubtful)["verdict"]):
        assert re.search(
            r"one (leads|predicts best) \(log_loss 0.3050\), but by mean normalized_entropy, "
            r"though not significantly, worse than a constant that is known only afterwards",
            text,
        )
    better = with_metrics(make_scores("three", [0.2, 0.2]), normalized_entropy=[0.9, 0.8])
    assert "a constant" not in as_json(judged(better))["verdict"]


def test_what_a_comparison_rests_on_is_not_one_paragraph(doubtful):
    facts = facts_of(doubtful)
    assert len(facts) > 1
    for text, each in ((page, '<p class="facts">{}</p>\n'), (markdown, "\n\n{}\n\n")):
        plain = text(doubtful).replace("\\_", "_")
        assert all(each.format(fact) in plain for fact in facts), text.__name__


def test_the_bias_at_the_retention_is_a_column_with_its_users(doubtful, make_scores):
    for table in (terminal_text(doubtful), markdown(doubtful)):
        assert re.search(r"one .*\+0\.0200 \(1\)", table)
        assert re.search(r"two .* - \(0\)", table)
    one, two = as_json(doubtful)["leaderboard"][:2]
    assert (one["threshold_bias_at_0_9"], one["threshold_bias_at_0_9_users"]) == (0.02, 1)
    assert np.isnan(two["threshold_bias_at_0_9"])
    assert two["threshold_bias_at_0_9_users"] == 0
    without = judged(make_scores("three", [0.2, 0.2]), make_scores("four", [0.3, 0.2]))
    assert "threshold_bias" not in terminal_text(without) + csv_text(without)


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
