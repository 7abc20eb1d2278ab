"""Why a test may skip where CI=true: there, every other skip is a failure.

A missing package, program or log would otherwise silence tests for good. Elsewhere all skips are
reported and none fails, so that the tests can be run with what is at hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping

import pytest

# What the reason of a skip contains, as a regular expression, and why it is accepted.
ACCEPTED: Mapping[str, str] = {
    r"there is (no|a) GPU here": "hosted machines have none, and each test needs one or the other",
    "published results are not here": "they have no licence, so they cannot travel along",
    "needs pdflatex": "TeX takes 300 MB; what it would compile is checked line by line",
    "a width of 2, and dropout": "one network is too small to learn what this test asks",
    "the project asks for Python 3.11": "of the matrix of versions, one is the project's",
    # Systems and processors: each of these runs somewhere in the matrix, or on some x86 processor.
    "(limits and /proc of Linux|signals of POSIX|Windows (cannot|has no))": "another system",
    "no (pipes with a name|timers here)|needs a timer that interrupts": "another system",
    "numpy has no numbers longer than 64 bits here": "Windows and ARM",
    "(names x86 processors|levels are of x86-64|is another language than that of x86)": "ARM",
    "this processor has no (AVX2|vector registers beyond those of SSE)": "an older processor",
}


def refusal(reason: str) -> str | None:
    """Return why a skip for this reason is a failure here; None if it is not one."""
    accepted = any(re.search(pattern, reason) for pattern in ACCEPTED)
    if accepted or os.environ.get("CI") != "true":
        return None
    return f"skipped where CI=true, and the reason is not in tests/skips.py: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Accept no silent skip of a test where CI=true."""
    report = yield
    _refuse_silence(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Accept no silent skip of a module, either."""
    report = yield
    _refuse_silence(report)
    return report


def _refuse_silence(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip that is not accepted into a failure; expected failures are not skips."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    refused = refusal(reason)
    if refused:
        report.outcome, report.longrepr = "failed", refused
