"""Names from files, which run nothing and change no structure, and numbers in text."""

import csv
import io
import json
import re
import unicodedata
from functools import cache

import numpy as np
import pytest
from cases import elements
from saved import entry_with

from srs_eval.comparison.answer import terminal
from srs_eval.comparison.compare import compare
from srs_eval.comparison.page import Table, for_csv
from srs_eval.comparison.report import as_json, csv_text, latex, markdown, page
from srs_eval.comparison.words import interval, one_line

PAYLOADS = {
    "line ends": "x\r\\input{/etc/passwd}\r% y\n\\end{document}\n# z\x85\\input{a}\v\\input{a}\fy",
    "separators and directions": "x\u2028\\input{a}\u2029y\u202eexe.fdp\u2066y\u2067z\u2068\u2069",
    "controls and what XML cannot hold": "\x1b]0;t\x07x\x1b[31mx\x9b32mbad\b\bgood\x00\ud800\ufffe",
    "formula": '=HYPERLINK("http://evil.example";"x")',
    "formula with a plus": "+1+cmd|' /C calc'!A0",
    "formula with an at sign": "@SUM(1;2)",
    "wide formula": "＝1+1",
    "HTML": "<script>alert(1)</script><img src=x onerror=alert(1)>&#x202e;&lt;b&gt;",
    "XML": "--></text><a href='http://evil.example'><script>1</script></a><!-- ]]><x>",
    "links": "[x](javascript:alert(1)) ![y](//evil.example) http://evil.example www.evil.example",
    "pipes and code": "a | b || c `x` ``` ~~~ **x** __y__ ~~z~~",
    "heading": "# x",
    "list": "1. x",
    "mathematics": r"$\frac{1}{0}$ $$\unicode{1}$$ \write18{rm} #1 %x & ^^M _y ~ {",
    "optional argument": "[1cm] x",
}
PLAIN = "plain"
IN_MARKDOWN = r"\]\(|\]:|\]\[|://|www\.|(?<!\\)(?:\\\\)*[`$~<&]"
IN_LATEX = r"(?m)^[^%\n].*(?<!\\)[%#^$]|(?:\\\\|\\midrule)\s*(?:\[|\*)"
OF_SIGNS = {"textbackslash", "textasciitilde", "ensuremath"}  # Macros that stand for one


UNSAFE = {"Cc", "Cs", "Zl", "Zp", "LRE", "RLE", "LRO", "RLO", "PDF"}
UNSAFE |= {"LRI", "RLI", "FSI", "PDI", "B"}


def unsafe(text):
    """Return the characters that no output may hold, line feeds apart."""
    kinds = (unicodedata.category, unicodedata.bidirectional)
    return [sign for sign in {*text} - {"\n"} if UNSAFE & {kind(sign) for kind in kinds}]


@cache
def verdict_on(name):
    """Compare a run of the given name, and with a user of that name, with a plain one."""
    rng = np.random.default_rng(0)
    users = [name, *(f"user {number}" for number in range(7))]
    auc, loss = rng.uniform(0.6, 0.7, 8), rng.uniform(0.2, 0.4, 8)
    about = {"data": name, "protocol": name, "when": "at_review", "tags": {"config_hash": name}}
    runs = [
        entry_with(
            label, dict.fromkeys(users, 100), {"auc": auc, "log_loss": loss + n / 10}, **about
        )
        for n, label in enumerate((name, "other"))
    ]
    return compare(runs)


def unescaped(sign, line):
    return len(re.findall(rf"(?<!\\)(?:\\\\)*{re.escape(sign)}", line))


def in_markdown(text):
    """Return the kind of each line and, of a table, the number of cells."""
    for line in text.splitlines():
        kind = re.match(r"\s*(#+ |[>+*=-] ?|\d+[.)] |`{3}|~{3}|\||\[[^]]*\]:)?", line)[1] or ""
        yield kind.strip(), line.startswith("|") and unescaped("|", line)


def in_latex(text):
    """Return the number of cells of each line, and how deep its end is in braces."""
    for line in text.split("\n"):
        depth = unescaped("{", line) - unescaped("}", line)
        yield "comment" if line.startswith("%") else (unescaped("&", line), depth)


def in_csv(text):
    rows = list(csv.reader(io.StringIO(text, newline="")))
    for cell in (cell for row in rows for cell in row):
        is_number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell)
        assert is_number or not cell.strip().startswith(tuple("=+-@＝＋－＠"))
        assert "\n" not in cell
    return map(len, rows)


@pytest.mark.parametrize("name", PAYLOADS.values(), ids=PAYLOADS)
def test_a_name_changes_no_structure_and_runs_nothing(name):
    verdict, plain = verdict_on(name), verdict_on(PLAIN)
    for form, shape, forbidden in (
        (terminal, lambda _: [], "$^"),
        (csv_text, in_csv, "$^"),
        (markdown, in_markdown, IN_MARKDOWN),
        (latex, in_latex, IN_LATEX),
    ):
        text = form(verdict)
        assert unsafe(text) == []
        assert list(shape(text)) == list(shape(form(plain)))
        assert not re.search(forbidden, text)
    macros, of_plain = (
        {*re.findall(r"\\([a-zA-Z]+)", latex(of).replace("\\\\", ""))} for of in (verdict, plain)
    )
    assert macros <= of_plain | OF_SIGNS
    assert unsafe(one_line(name)) == []
    assert "\n" not in one_line(name)
    assert one_line(one_line(name)) == one_line(name)
    assert json.dumps(as_json(verdict)).isascii()


def test_names_in_any_language_and_numbers_stay_as_they_are():
    for name in ("学習", "عربي \u200f", "a\u200db", "naïve–µ", "a  b", "👩\u200d🎓"):
        assert one_line(name) == name
    assert [for_csv(value) for value in (-0.25, 7, "-0.25")] == [-0.25, 7, "'-0.25"]
    lines = Table(["a", "b"], [[99 * "x", 0.5]]).write().splitlines()
    assert [*map(len, lines)] == [80, 80, 80]
    for low, text in ((6e-5, "0.0001"), (4e-5, "0.00004"), (1e-12, "0.000000000"), (0, "0.0000")):
        assert interval(low, 0.2) == f"[{text}, {0.2:.{len(text) - 2}f}]"


def test_a_page_has_no_elements_from_names_and_may_run_and_fetch_nothing(page_without_images):
    name = " ".join(PAYLOADS.values())
    text = page(verdict_on(name), command=name)
    plain = page(verdict_on(PLAIN), command=PLAIN)
    shapes = [[(tag, [*names]) for tag, names in elements(each)] for each in (text, plain)]
    assert shapes[0] == shapes[1]
    assert unsafe(text) == []
    text.encode("utf-8")
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', plain)
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert (allowed["default-src"], allowed["img-src"]) == ("'none'", "data:")
    assert not {"script-src", "connect-src"} & {*allowed}
    assert not re.search(r"<script|\bnan\b", plain)
