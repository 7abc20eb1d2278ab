"""What the command prints is plain and aligned."""

from math import nan

from srs_eval.text import console
from srs_eval.text.table import Table


def test_lines_go_to_standard_output_and_complaints_to_standard_error(capsys):
    console.say("a line")
    console.complain("no such file")
    assert capsys.readouterr() == ("a line\n", "srs_eval: no such file\n")


def test_facts_stand_in_columns_and_numbers_to_the_right():
    assert console.facts({"a": "1", "longer": "2\n3"}) == "a       1\nlonger  2\n        3"
    table = Table(["algorithm", "users"], [("avg", 12), ("moving_avg", "0.3000")])
    header, _, *rows = table.write().splitlines()
    assert header == "algorithm      users"
    assert rows == ["avg               12", "moving_avg    0.3000"]
    assert console.shell(["python", "data.path=my file", "a=[1]"]) == (
        "python 'data.path=my file' 'a=[1]'"
    )


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
