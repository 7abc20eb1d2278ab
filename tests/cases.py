"""Cases of parametrized tests: few of them for every change, the others for every night."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_nightly(cases: Iterable[Any], kept: int = 1) -> list[Any]:
    """Return the cases of a parametrized test, all after the first `kept` marked nightly."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.nightly if nth >= kept else (),
        )
        for nth, case in enumerate(cases)
    ]
