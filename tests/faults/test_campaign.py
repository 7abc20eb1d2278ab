"""The campaign finds defects that are planted; the nightly part runs it."""

import os
import sys

import pytest
from campaign import report
from judging import BAD, judged_within_limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc of Linux")


def raises(random, folder):
    raise RuntimeError("planted")


def loses(random, folder):
    raise AssertionError("a user")


def ends(random, folder):
    os._exit(7)


def goes_on(random, folder):
    while True:
        pass


def test_an_error_that_reaches_the_person_an_end_and_a_hang_are_counted(tmp_path):
    functions = (raises, loses, ends, goes_on)
    found = [judged_within_limits(function, None, tmp_path, 1) for function in functions]
    assert [(outcome, shown.partition(" (")[0]) for outcome, shown in found] == [
        ("traceback", "RuntimeError: planted"),
        ("lost", "a user"),
        ("traceback", "the interpreter died with 7"),
        ("hang", "no end after 1 CPU seconds or 600 s"),
    ]
    told = report([("csv 7 3", outcome, "why") for outcome in ("accepted", *BAD)])
    assert told.count('campaign.py --case "csv 7 3"') == told.count(": why") == len(BAD)
