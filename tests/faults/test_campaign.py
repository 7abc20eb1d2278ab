"""The campaign finds defects that are planted; the nightly part runs it."""

import importlib
import sys

import pytest
from campaign import report
from judging import BAD, judged_within_limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc of Linux")

PLANTED = """
import os

def raises(random, folder): raise RuntimeError("planted")
def loses(random, folder): assert False, "a user"
def ends(random, folder): os._exit(7)
def goes_on(random, folder):
    while True: pass
"""


def test_an_error_that_reaches_the_person_an_end_and_a_hang_are_counted(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    planted = importlib.import_module("planted")
    functions = (planted.raises, planted.loses, planted.ends, planted.goes_on)
    found = [judged_within_limits(function, None, tmp_path, 1) for function in functions]
    assert [(outcome, shown.partition(" (")[0]) for outcome, shown in found] == [
        ("traceback", "RuntimeError: planted"),
        ("lost", "a user"),
        ("traceback", "the interpreter died with 7"),
        ("hang", "no end after 1 CPU seconds or 600 s"),
    ]
    told = report([("csv 7 3", outcome, "why") for outcome in ("accepted", *BAD)])
    assert told.count('campaign.py --case "csv 7 3"') == told.count(": why") == len(BAD)
