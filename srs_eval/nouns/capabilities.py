"""What algorithms declare, their optional methods, and names that look like misspellings."""

from __future__ import annotations

import difflib

from srs_eval.nouns.protocols import (
    Algorithm,
    CurveModel,
    FittingInSteps,
    MemoryModel,
    Pretrainable,
    Sampling,
    WarmStarting,
)
from srs_eval.nouns.when import WHEN, when_of

# Each method, with the protocol that describes it.
CAPABILITIES = {
    "refit": WarmStarting,
    "fit_in_steps": FittingInSteps,
    "pretrain": Pretrainable,
    "sample": Sampling,
    "predict_at": CurveModel,
}
_KNOWN = {"fit", "predict", "pretrained", *CAPABILITIES}
_ALIKE = 0.9


def undeclared(algorithm: object) -> list[str]:
    """Return what an algorithm fails to declare, with the values that are possible.

    >>> undeclared(Algorithm)
    []
    """
    missing = [
        f"{name} (True or False)"
        for name in ("same_day", "sees_truth")
        if not isinstance(getattr(algorithm, name, None), bool)
    ]
    try:
        when_of(algorithm)
    except ValueError:
        missing.append(f"when ({', '.join(WHEN)})")
    return missing


def misspelt(plugged_in: Algorithm | MemoryModel) -> list[str]:
    """Return a sentence for each method whose name is nearly that of an optional method.

    A method that is called ``fit_in_step`` is never called, and nothing else would say so.

    >>> from types import SimpleNamespace
    >>> misspelt(SimpleNamespace(fit_in_step=print))
    ['SimpleNamespace.fit_in_step is never called; did you mean fit_in_steps?']
    """
    found = []
    for name in dir(plugged_in):
        if name.startswith("_") or name in _KNOWN:
            continue
        meant = difflib.get_close_matches(name, CAPABILITIES, 1, _ALIKE)
        if meant and not hasattr(plugged_in, meant[0]) and callable(getattr(plugged_in, name)):
            kind = type(plugged_in).__name__
            found.append(f"{kind}.{name} is never called; did you mean {meant[0]}?")
    return found
