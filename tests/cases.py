"""Cases of parametrized tests: few of them for every change, the others for every night."""

import pytest


def rest_nightly(cases, kept=1):
    """Return the cases of a parametrized test, all after the first `kept` marked nightly."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.nightly if nth >= kept else (),
        )
        for nth, case in enumerate(cases)
    ]
