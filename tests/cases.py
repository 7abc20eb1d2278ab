"""Cases of parametrized tests: few of them for every day, the others for the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_slow(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """Return the cases of a parametrized test, all after the first `quick` of them marked slow."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.slow if nth >= quick else (),
        )
        for nth, case in enumerate(cases)
    ]
