"""Text of every kind: names from files, which run nothing, addresses, tables, the console."""

import base64
import csv
import hashlib
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from functools import cache
from math import inf, nan

import numpy as np
import pyarrow as pa
import pytest
from cases import elements
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
from srs_eval.text.addresses import has_secret, masked, secret_problem, without_secrets
from srs_eval.text.pages import TEMPLATES, render
from srs_eval.text.plain import one_line, printable
from srs_eval.text.table import Cell, Table

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


def shape_of_markdown(text):
    """What Markdown makes of each line: its kind and, of a table, the number of cells."""
    for line in text.splitlines():
        kind = re.match(r"\s*(#+ |[>+*=-] ?|\d+[.)] |`{3}|~{3}|\||\[[^]]*\]:)?", line)[1] or ""
        yield kind.strip(), line.startswith("|") and len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))


def shape_of_latex(text):
    """Comments and numbers of cells, the macros, and how deep braces are at each line."""
    depth = 0
    for line in text.split("\n"):
        if line.startswith("%"):
            yield "comment"
            continue
        for sign in re.sub(r"\\[{}\\]", "", line):
            depth += (sign == "{") - (sign == "}")
            assert depth >= 0
        assert set(re.findall(r"\\([a-zA-Z]+)", line.replace("\\\\", ""))) <= MACROS
        yield len(re.findall(r"(?<!\\)&", line)), depth


def shape_of_csv(text):
    rows = list(csv.reader(io.StringIO(text, newline="")))
    for cell in (cell for row in rows for cell in row):
        is_number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell)
        assert is_number or not cell.strip().startswith(tuple("=+-@＝＋－＠"))
        assert "\n" not in cell
    return map(len, rows)


# What writes a verdict, what of it does not depend on names, and what it may not have.
FORMATS = (
    (
        lambda verdict: printable(terminal_text(verdict)),
        lambda text: [None for _ in text.splitlines()],
        None,
    ),
    (csv_text, shape_of_csv, None),
    (
        markdown,
        shape_of_markdown,
        r"<|\]\(|\]:|\]\[|://|www\.|&(?!amp;|lt;)|(?<!\\)(?:\\\\)*[`$~]",
    ),
    (
        lambda verdict: latex(verdict).replace(r"$\geq$", ""),
        shape_of_latex,
        r"(?m)^[^%\n].*(?<!\\)[%#^$]|(?:\\\\|\\midrule)\s*(?:\[|\*)",
    ),
)


@NAMES
def test_a_name_changes_no_structure_and_runs_nothing(name, verdict_on, capsys):
    verdict, plain = verdict_on(name), verdict_on(PLAIN)
    for form, shape, forbidden in FORMATS:
        text = form(verdict)
        assert unsafe(text) == []
        assert list(shape(text)) == list(shape(form(plain)))
        assert not forbidden or not re.search(forbidden, text)
    (of_plain,), (leaderboard,) = (
        sweep_texts([run.place for run in each.runs]) for each in (plain, verdict)
    )
    console.say(leaderboard)
    console.complain(f"{name}: no such file")
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == len(of_plain.splitlines())
    for text in (one_line(name), said.out, said.err, heading("users", name)):
        assert unsafe(text.replace("\t", "")) == []
    assert "\n" not in one_line(name)
    assert one_line(one_line(name)) == one_line(name)
    as_text = json.dumps(as_json(verdict))
    assert as_text.isascii()
    assert json.loads(as_text)["runs"][0]["data"] == one_line(name)


def test_names_in_any_language_and_numbers_stay_as_they_are(tmp_path):
    for name in ("学習", "عربي \u200f", "a\u200db", "naïve–µ", "a  b", "👩\u200d🎓"):
        assert one_line(name) == name
    # A figure warns of no letter that its font lacks.
    figure = users_figure({"log_loss": np.linspace(0.2, 0.4, 8)}, title="学習 naïve")
    assert save_figure(figure, tmp_path, "users", formats=["svg"])
    assert lettering("学習 naïve") == "\ufffd\ufffd naïve"
    assert [escapes.for_csv(value) for value in (-0.25, 7, "-0.25")] == [-0.25, 7, "'-0.25"]


@pytest.mark.slow
def test_the_page_has_no_elements_from_names(verdict_on):
    name = " ".join(PAYLOADS.values())
    text = page(verdict_on(name), command=name)
    plain = page(verdict_on(PLAIN), command=PLAIN)
    shapes = [[(tag, [*names]) for tag, names in elements(each)] for each in (text, plain)]
    assert shapes[0] == shapes[1]
    assert unsafe(text) == []
    text.encode("utf-8")


@pytest.mark.parametrize("script", ["", TEMPLATES.globals["content"]("text/sort.js")])
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


@pytest.mark.slow
def test_figures_show_names_as_they_are(verdict_on, tmp_path):
    name, scores = " ".join(PAYLOADS.values()), np.linspace(0.2, 0.4, 8)
    made = [figure for _, _, figure in figures(verdict_on(name))]
    made += [versus_figure(scores, scores**2, names=(name, "other"))]
    made += [users_figure({"log_loss": scores}, title=name)]
    of_matplotlib = {"svg", "g", "defs", "path", "use", "clipPath", "rect", "style", "metadata"}
    of_matplotlib |= {"RDF", "Work", "type", "format", "title"}
    for number, figure in enumerate(made):
        png, svg = save_figure(figure, tmp_path, f"figure{number}")
        assert png.stat().st_size > 0
        kinds = {tag.tag.rpartition("}")[2] for tag in ElementTree.parse(svg).iter()}
        assert kinds <= of_matplotlib


def test_a_secret_is_found_and_masked_in_each_spelling(transcript):
    def told_by(address):
        message = masked(f"no answer from {address.replace('%40', '@')} ({address})", address)
        assert has_secret(address) == has_secret(f"see {address} for more")
        assert has_secret(address) == ("S3CRET" in address) == ("***" in message)
        assert "S3CRET" not in message
        return f"{message}\n"

    transcript("addresses_with_secrets", told_by)
    # A driver may see the end of the password at the first @.
    assert masked("no S3CRET-a", "http://u:S3CRET-a@b@h") == "no ***"
    text = "http://me:1@host failed: 1 of 11 runs"  # a short one is also a number
    assert masked(text, "http://me:1@host") == "http://me:***@host failed: 1 of 11 runs"


def test_what_the_environment_has_is_masked_and_belongs_there():
    environment = {"WAREHOUSE": "db://me:S3CRETpw@h", "MLFLOW_TRACKING_TOKEN": "S3CRETtoken"}
    text = without_secrets("Bearer S3CRETtoken, or S3CRETpw?", environment)
    assert text == "Bearer ***, or ***?"
    assert "MLFLOW_TRACKING_URI" in secret_problem("tracking.uri")
    assert "env:" in secret_problem("data.url")


def test_facts_stand_in_columns_and_words_are_quoted():
    assert console.facts({"a": "1", "longer": "2\n3"}) == "a       1\nlonger  2\n        3"
    quoted = console.shell(["python", "data.path=my file", "a=[1]"])
    assert quoted == "python 'data.path=my file' 'a=[1]'"


def test_numbers_have_their_digits_and_intervals_as_many_as_show_their_signs(transcript):
    kinds = {
        "counted": lambda number: console.counted(number, "user"),
        "interval": console.interval,
        "number": console.number,
    }

    def told_by(kind, *numbers):
        return kinds[kind](*map(json.loads, numbers)) + "\n"

    transcript("numbers_in_text", told_by)


ROWS = [
    ("a|b_c", 1234, 0.25, Cell("+0.1", "[0, 1]", -0.5)),
    ("=1+1", 7, nan, Cell("", shade=1.0)),
    ("[x] & y", 0, -0.00001, "50 %"),
]
TABLE = Table(["name", "users", "score", "gap"], ROWS, bold={1}, sortable=True)


def test_cells_are_escaped_and_aligned_in_every_style(golden_text):
    html = TEMPLATES.get_template("text/table.html").module.table_of(TABLE)
    texts = [TABLE.write(style) for style in ("text", "github", "markdown", "latex")]
    empty = Table([], []).write("github")
    golden_text("table", "\n\n".join([*texts, html, TABLE.without("users", "gap").write(), empty]))


def test_csv_has_every_digit_and_no_formula():
    values = [("=x", 1 / 3, 10**9), ("-y", nan, None), ("z", -inf, True)]
    lines = list(csv.reader(Table(["name", "value", "count"], values).csv().splitlines()))
    assert lines[0] == ["name", "value", "count"]
    assert lines[1:] == [["'=x", repr(1 / 3), "1000000000"], ["'-y", "", ""], ["z", "", "True"]]
    # nor has a heading or the start of a row in LaTeX an option
    table = Table(["[2cm]", "=y"], [("*a", Cell("@x", "=z"))])
    assert [*csv.reader(table.csv().splitlines())] == [["[2cm]", "'=y"], ["*a", "'@x =z"]]
    assert not any(text.startswith(("[", "*")) for text in table.write("latex").splitlines())
