"""The one table: what each writer makes of the same cells."""

from __future__ import annotations

import csv
from math import inf, nan

from srs_eval.text.pages import TEMPLATES
from srs_eval.text.table import Cell, Table

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


def test_headings_and_cells_with_a_second_line_are_no_formula_and_no_option_of_a_rule():
    table = Table(["[2cm]", "=y"], [("*a", Cell("@x", "=z"))])
    assert [*csv.reader(table.csv().splitlines())] == [["[2cm]", "'=y"], ["*a", "'@x =z"]]
    for text in table.write("latex").splitlines():
        assert not text.startswith(("[", "*"))


def test_records_are_rows_and_alignment_is_padded_to_the_right():
    table = Table.of_records([{"a": 1, "b": 2}, {"a": 3, "b": 4}], align="ll", key="k")
    assert (table.headers, table.rows, table.key) == (["a", "b"], [[1, 2], [3, 4]], "k")
    assert TABLE.alignment == "lrrr"
    assert TABLE.without("name").alignment == "rrr"
    assert TABLE.texts()[0] == ["a|b_c", "1,234", "0.2500", "+0.1 [0, 1]"]
