"""What the command prints is plain and aligned."""

import math

import pytest

from srs_eval.text import console


def test_lines_go_to_standard_output_and_complaints_to_standard_error(capsys):
    console.say("a line")
    console.complain("no such file")
    assert capsys.readouterr() == ("a line\n", "srs_eval: no such file\n")


def test_named_facts_stand_in_columns():
    assert console.facts({"a": "1", "longer": "2\n3"}) == "a       1\nlonger  2\n        3"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.34567, 4, "0.3457"), (-1.0, 2, "-1.00"), (math.nan, 4, "-"), (0.0, 1, "0.0")],
)
def test_what_is_not_defined_is_a_dash(value, digits, text):
    assert console.number(value, digits) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [((0.1, 0.25), "[0.1000, 0.2500]"), ((math.nan, 1.0), "-"), ((1.0, math.nan), "-")],
)
def test_an_interval_has_both_ends_or_is_a_dash(ends, text):
    assert console.interval(*ends) == text


def test_commands_can_be_pasted():
    assert console.shell(["python", "data.path=my file", "a=[1]"]) == (
        "python 'data.path=my file' 'a=[1]'"
    )
