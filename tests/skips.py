"""Why a test may skip where CI=true: there, every other skip is a failure.

A missing package, program or log would otherwise silence tests for good. Elsewhere all skips are
reported and none fails, so that the tests can be run with what is at hand.
"""

import os
import re

import pytest

# What the reason of a skip contains, as a regular expression, and why it is accepted.
ACCEPTED = {
    "published results are not here": "they have no licence, so they cannot travel along",
    "needs pdflatex": "TeX takes 300 MB; what it would compile is checked line by line",
    # Systems and processors: each of these runs somewhere in the matrix, or on some x86 processor.
    "limits and /proc of Linux": "another system",
    "no (pipes with a name|timers here)": "another system",
    "levels are of x86-64": "ARM",
    "this processor has no AVX2": "an older processor",
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Turn a skip that is not accepted into a failure; expected failures are not skips."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        is_located = isinstance(report.longrepr, tuple)
        reason = report.longrepr[-1] if is_located else str(report.longrepr)
        if not any(re.search(pattern, reason) for pattern in ACCEPTED):
            report.outcome = "failed"
            report.longrepr = f"skipped where CI=true, and not as tests/skips.py says: {reason}"
    return report


pytest_make_collect_report = pytest_runtest_makereport  # of a module
