"""Text of every kind: addresses without secrets, the console, and the one table."""

import csv
from math import inf, nan

from srs_eval.text import console
from srs_eval.text.addresses import has_secret, masked, secret_problem, without_secrets
from srs_eval.text.pages import TEMPLATES
from srs_eval.text.table import Cell, Table

SECRETS = [
    "http://bob:S3CRETpw@127.0.0.1:1",
    "http://S3CRETtoken@host",
    "postgresql://h/x?user=bob&password=S3CRETpw",
    "http://bob:S3CRETa/S3CRETb@h",
    "http://u:S3CRETa@S3CRETb@h",
    "http://u:S3CRETa%40S3CRETb@h",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3DS3CRETpw%3BUID%3Dx",
    "mssql+pyodbc:///?odbc_connect=PWD%3D%7BS3CRETa%3BS3CRETb%7D",
    "s3://key:S3CRETkey@bucket/x",
    "https://a.blob.core.windows.net/c?sv=2024&sig=S3CRETsig",
    "https://h/x?AccountKey=S3CRETkey",
]


PLAIN = [
    "postgresql://me@host:5432/db?sslmode=require",
    "http://tracking:5000/runs@2",
    "abfss://container@account.dfs.core.windows.net/path",
    "sqlite:////home/me/mlflow.db",
    "s3://bucket/key",
    "tokens=3 password",
]


def test_a_secret_is_found_and_masked_in_each_spelling() -> None:
    for address in SECRETS:
        assert has_secret(address)
        assert has_secret(f"see {address} for more")
        plain = address.replace("%40", "@")
        message = masked(f"no answer from {plain} ({address})", address)
        assert "S3CRET" not in message
        assert "***" in message
    for address in PLAIN:
        assert not has_secret(address)
        assert masked(address, address) == address
    # A driver may see the end of the password at the first @.
    assert masked("no S3CRET-a", "http://u:S3CRET-a@b@h") == "no ***"
    text = "http://me:1@host failed: 1 of 11 runs"  # a short one is also a number
    assert masked(text, "http://me:1@host") == "http://me:***@host failed: 1 of 11 runs"


def test_what_the_environment_has_is_masked_and_belongs_there() -> None:
    environment = {"WAREHOUSE": "db://me:S3CRETpw@h", "MLFLOW_TRACKING_TOKEN": "S3CRETtoken"}
    text = without_secrets("Bearer S3CRETtoken, or S3CRETpw?", environment)
    assert text == "Bearer ***, or ***?"
    assert "MLFLOW_TRACKING_URI" in secret_problem("tracking.uri")
    assert "env:" in secret_problem("data.url")


def test_lines_go_to_standard_output_and_complaints_to_standard_error(capsys):
    console.say("a line")
    console.complain("no such file")
    assert capsys.readouterr() == ("a line\n", "srs_eval: no such file\n")


def test_facts_stand_in_columns_and_words_are_quoted_and_counted():
    assert console.facts({"a": "1", "longer": "2\n3"}) == "a       1\nlonger  2\n        3"
    quoted = console.shell(["python", "data.path=my file", "a=[1]"])
    assert quoted == "python 'data.path=my file' 'a=[1]'"
    assert [console.counted(n, "user") for n in (0, 1, 1200)] == [
        "0 users",
        "1 user",
        "1,200 users",
    ]


def test_numbers_have_their_digits_and_intervals_as_many_as_show_their_signs():
    for value, digits, text in ((0.34567, 4, "0.3457"), (-1.0, 2, "-1.00"), (nan, 4, "-")):
        assert console.number(value, digits) == text
    assert console.number(-0.00001) == "0.0000"
    for low, high, text in (
        (0.1, 0.25, "[0.1000, 0.2500]"),
        (nan, 1.0, "-"),
        (1.0, nan, "-"),
        (0.0, 0.0, "[0.0000, 0.0000]"),
        (0.00005, 0.2, "[0.0001, 0.2000]"),
        (0.000049, 0.2, "[0.00005, 0.20000]"),
        (-0.2, -0.0000051, "[-0.20000, -0.00001]"),
        (0.0, 1e-12, "[0.000000000, 0.000000000]"),
    ):
        assert console.interval(low, high) == text
    assert console.interval(0.009, 0.2, 1) == "[0.01, 0.20]"


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


def test_headings_and_cells_are_no_formula_and_no_option_of_a_rule():
    table = Table(["[2cm]", "=y"], [("*a", Cell("@x", "=z"))])
    assert [*csv.reader(table.csv().splitlines())] == [["[2cm]", "'=y"], ["*a", "'@x =z"]]
    assert not any(text.startswith(("[", "*")) for text in table.write("latex").splitlines())
