"""The campaign finds defects that are planted; the nightly part runs it."""

import importlib
import re
import sys

import pytest
from campaign import Case, report
from judging import BAD, OUTCOMES, judged_within_limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc of Linux")

PLANTED = """
import os

def raises(random, folder): raise RuntimeError("planted")
def ends(random, folder): os._exit(7)
def goes_on(random, folder):
    while True: pass
"""


def test_an_error_that_reaches_the_person_an_end_and_a_hang_are_counted(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    planted = importlib.import_module("planted")
    found = []
    for function in (planted.raises, planted.ends, planted.goes_on):
        outcome, shown = judged_within_limits(function, None, tmp_path / function.__name__, 1)
        found.append((outcome, shown.partition(" (")[0]))
    raised = ("traceback", "RuntimeError: planted")
    died = ("traceback", "the interpreter died with 7")
    assert found == [raised, died, ("hang", "no end after 1 CPU seconds or 600 s")]


def test_bad_cases_are_listed_with_the_command_that_repeats_them():
    case = Case("some kind", 7, 3)
    told = report([(case, outcome, "why") for outcome in OUTCOMES])
    assert told.count('campaign.py --case "some kind 7 3"') == told.count(": why") == len(BAD)
    assert re.search(r"\| some kind +\| +7 \|( +1 \|){7}\n", told)
    assert case.random.random() == case.random.random() != Case("some kind", 7, 4).random.random()
