"""Names from files: whatever they hold, every output keeps its structure and runs nothing."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from markupsafe import Markup

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report.files import as_json, csv_text, latex, markdown, terminal_text
from srs_eval.comparison.report.html import figures, page
from srs_eval.comparison.report.sweep import sweep_texts
from srs_eval.plots.style import heading, lettering, save_figure
from srs_eval.plots.users_plot import users_figure
from srs_eval.plots.versus_plot import versus_figure
from srs_eval.results.files import SCORES, SUMMARY, write_table
from srs_eval.results.run import load_run
from srs_eval.text import console, escapes
from srs_eval.text.pages import SORT_SCRIPT, render
from srs_eval.text.plain import one_line, printable

PAYLOADS = {
    "line ends": "x\r\\input{/etc/passwd}\r% y\n\\end{document}\n# z\x85\\input{a}\v\\input{a}\fy",
    "separators": "x\u2028\\input{a}\u2029y",
    "controls of a terminal": "\x1b]0;title\x07x\x1b[31mx\x9b32mbad\b\b\bgood\x00",
    "direction of text": "x\u202eexe.fdp\u2066y\u2067z\u2068\u2069",
    "what XML and UTF-8 cannot hold": "x\ud800y\ufffe\uffffz",
    "formula": '=HYPERLINK("http://evil.example";"x")',
    "formula with a plus": "+1+cmd|' /C calc'!A0",
    "formula with a minus": "-2+3",
    "formula with an at sign": "@SUM(1;2)",
    "formula after blanks": "\t\r=1+1",
    "wide formula": "＝1+1",
    "HTML": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "HTML attribute": "\" onmouseover='alert(1)' x=\"",
    "HTML entity": "&#x202e;&lt;b&gt;",
    "XML": "--></text><a href='http://evil.example'><script>1</script></a><!-- ]]><x>",
    "link": "[x](javascript:alert(1)) ![y](http://evil.example/i.png)",
    "reference": "[x]: http://evil.example",
    "automatic link": "https://evil.example www.evil.example <http://evil.example>",
    "pipes and code": "a | b || c `x` ``` ~~~ **x** __y__ ~~z~~",
    "heading": "# x",
    "quotation": "> x",
    "list": "1. x",
    "rule": "---",
    "mathematics": r"$\frac{1}{0}$ $$\unicode{1}$$",
    "TeX": r"\write18{rm} #1 %x & ^^M _y ~ {",
    "optional argument": "[1cm] x",
    "starred row": "* x",
}
NAMES = pytest.mark.parametrize("name", PAYLOADS.values(), ids=PAYLOADS)
PLAIN = "plain"
MACROS = {
    *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule"),
    *("textbf", "textbackslash", "textasciitilde", "textasciicircum", "textless"),
    *("textgreater", "textdegree", "dag", "S", "geq"),
    *("resizebox", "ifdim", "width", "linewidth", "else", "fi"),
}


def unsafe(text):
    """Characters that no output may hold, line feeds apart."""
    kinds = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "B"}
    return [
        sign
        for sign in text
        if sign != "\n"
        and (
            unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(sign) in kinds
        )
    ]


@pytest.fixture(scope="module")
def verdict_on(tmp_path_factory):
    """Compare a run of the given name, and with a user of that name, with a plain one."""

    @cache
    def judged(name):
        rng = np.random.default_rng(0)
        runs = []
        for number, label in enumerate((name, "other")):
            place = tmp_path_factory.mktemp("run")
            shown = name.encode("utf-8", "replace").decode()  # parquet refuses what is not UTF-8
            columns = {"user": [shown, *(f"user {n}" for n in range(7))], "reviews": [100] * 8}
            columns |= {"rows": [f"{n}" for n in range(8)], "auc": rng.uniform(0.6, 0.7, 8)}
            columns["log_loss"] = rng.uniform(0.2, 0.4, 8) + 0.1 * number
            write_table(place / SCORES, pa.table(columns))
            summary = {"label": label, "data": name, "protocol": name, "failed": 0}
            summary |= {"when": "at_review", "interval_over": "users"}
            summary["tags"] = {"config_hash": name}
            (place / SUMMARY).write_text(json.dumps(summary))
            runs.append(load_run(place))
        return compare(runs)

    return judged


@NAMES
def test_a_name_is_printed_on_one_line_without_controls(name, verdict_on, capsys):
    assert "\n" not in one_line(name)
    assert one_line(one_line(name)) == one_line(name)
    one_line(name).encode("utf-8")
    verdict, plain = verdict_on(name), verdict_on(PLAIN)
    console.say(terminal_text(verdict))
    console.complain(f"{name}: no such file")
    said = capsys.readouterr()
    (of_plain,), (leaderboard,) = (
        sweep_texts([run.place for run in each.runs]) for each in (plain, verdict)
    )
    for text in (one_line(name), printable(name), said.out, said.err, printable(leaderboard)):
        assert unsafe(text.replace("\t", "")) == []
    assert unsafe(heading("users", name)) == []
    assert len(said.out.splitlines()) == len(terminal_text(plain).splitlines())
    assert len(printable(leaderboard).splitlines()) == len(of_plain.splitlines())
    as_text = json.dumps(as_json(verdict))
    assert as_text.isascii()
    assert json.loads(as_text)["runs"][0]["data"] == one_line(name)


def test_names_in_any_language_stay_as_they_are(tmp_path):
    for name in ("学習", "عربي \u200f", "a\u200db", "naïve–µ", "a  b", "👩\u200d🎓"):
        assert one_line(name) == name
    # A figure warns of no letter that its font lacks.
    figure = users_figure({"log_loss": np.linspace(0.2, 0.4, 8)}, title="学習 naïve")
    assert save_figure(figure, tmp_path, "users", formats=["svg"])
    assert lettering("学習 naïve") == "\ufffd\ufffd naïve"


@NAMES
def test_spreadsheets_evaluate_nothing(name, verdict_on):
    text = csv_text(verdict_on(name))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == len(list(csv.reader(io.StringIO(csv_text(verdict_on(PLAIN))))))
    for cell in (cell for row in rows for cell in row):
        is_number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell)
        assert is_number or not cell.strip().startswith(
            ("=", "+", "-", "@", "＝", "＋", "－", "＠")
        )
        assert unsafe(cell) == []
    assert "\n" not in "".join(cell for row in rows for cell in row)
    assert [escapes.for_csv(value) for value in (-0.25, 7, "-0.25")] == [-0.25, 7, "'-0.25"]


def markdown_shape(text):
    """What Markdown makes of each line: its kind and, of a table, the number of cells."""
    shape = []
    for line in text.splitlines():
        kind = re.match(r"\s*(#+ |[>+*=-] ?|\d+[.)] |`{3}|~{3}|\||\[[^]]*\]:)?", line)[1] or ""
        cells = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0
        shape.append((kind.strip(), cells))
    return shape


@NAMES
def test_markdown_keeps_its_lines_and_has_no_links_or_html(name, verdict_on):
    text = markdown(verdict_on(name))
    assert markdown_shape(text) == markdown_shape(markdown(verdict_on(PLAIN)))
    assert unsafe(text) == []
    assert not re.search(r"<|\]\(|\]:|\]\[|://|www\.|&(?!amp;|lt;)", text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`$~]", text)


def latex_problems(text):
    """Everything in a LaTeX file that this package would not have written."""
    body = [line for line in text.split("\n") if not line.startswith("%")]
    joined = "\n".join(body)
    problems = sorted(set(re.findall(r"\\([a-zA-Z]+)", joined.replace("\\\\", ""))) - MACROS)
    problems += [line for line in body if re.search(r"(?<!\\)[%#^]", line)]
    problems += re.findall(r"(?<!\\)\$(?!\\geq\$)", joined.replace(r"$\geq$", ""))
    depth = 0
    for sign in re.sub(r"\\[{}\\]", "", joined):
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            problems.append("a brace closes nothing")
    problems += ["a brace is left open"] if depth else []
    problems += re.findall(r"(?:\\\\|\\midrule)\s*(?:\[|\*)", joined)
    return problems


@NAMES
def test_latex_runs_nothing_and_keeps_its_rows(name, verdict_on):
    text, plain = latex(verdict_on(name)), latex(verdict_on(PLAIN))
    assert latex_problems(plain) == []
    assert latex_problems(text) == []
    assert unsafe(text) == []
    lines, expected = text.split("\n"), plain.split("\n")
    assert len(lines) == len(expected)
    for line, other in zip(lines, expected, strict=True):
        assert line.startswith("%") == other.startswith("%")
        if not line.startswith("%"):
            assert len(re.findall(r"(?<!\\)&", line)) == len(re.findall(r"(?<!\\)&", other))


class Elements(HTMLParser):
    """Notes the elements of a page with the names of their attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(sorted(key for key, _ in attrs if key != "class"))))


def elements(text):
    parser = Elements()
    parser.feed(text)
    return parser.found


@pytest.mark.slow
def test_the_page_has_no_elements_from_names(verdict_on):
    name = " ".join(PAYLOADS.values())
    text = page(verdict_on(name), command=name)
    assert elements(text) == elements(page(verdict_on(PLAIN), command=PLAIN))
    assert unsafe(text) == []
    text.encode("utf-8")


@pytest.mark.parametrize("script", ["", SORT_SCRIPT.read_text(encoding="utf-8")])
def test_a_page_may_run_its_own_script_alone_and_fetch_nothing(script):
    text = render("text/page.html", title="<script>alert(1)</script>", script=Markup(script))
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', text)
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    found = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    assert found == ([script] if script else [])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert allowed["script-src"] == (f"'sha256-{digest}'" if script else "'none'")
    assert (allowed["default-src"], allowed["img-src"]) == ("'none'", "data:")
    assert not re.search(r"fetch|XMLHttp|import|eval|Function", script)


def drawn(name, verdict):
    """Every kind of figure that shows names."""
    yield from (figure for _, _, figure in figures(verdict))
    scores = np.linspace(0.2, 0.4, 8)
    yield versus_figure(scores, scores**2, names=(name, "other"), metric="log_loss", better="lower")
    yield users_figure({"log_loss": scores}, title=name)


@pytest.mark.slow
def test_figures_show_names_as_they_are(verdict_on, tmp_path):
    name = " ".join(PAYLOADS.values())
    of_matplotlib = {"svg", "g", "defs", "path", "use", "clipPath", "rect", "style", "metadata"}
    of_matplotlib |= {"RDF", "Work", "type", "format", "title"}
    for number, figure in enumerate(drawn(name, verdict_on(name))):
        png, svg = save_figure(figure, tmp_path, f"figure{number}")
        assert png.stat().st_size > 0
        kinds = {tag.tag.rpartition("}")[2] for tag in ElementTree.parse(svg).iter()}
        assert kinds <= of_matplotlib
