"""Names of protocols, which runs are told apart by, and options that make no sense."""

import pytest

from srs_eval.errors import SrsEvalError
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

NAMED = (
    *(SrsBenchmark(), SrsBenchmarkRefit(refits=20), SrsBenchmarkRefit(100, warm_start=False)),
    *(Prequential(), Prequential(first=5, every=7, most=9, warm_start=False)),
    *(SrsBenchmarkSecs(), SrsBenchmarkSecs(answer_time=True)),
    *(SrsBenchmarkSecs(previous_answer=True), SrsBenchmarkEqualised(answer_time=True)),
    SrsBenchmarkEqualised(refits=20, previous_answer=True),
    *(Validation(), Validation(SrsBenchmarkRefit(20), share=0.75)),
)
COUNTS, SHARES, SWITCHES = (0, -1, 2.5, True, "many"), (0, 1, 1.5, -0.1, "most", True), ("no", 0)
REFUSED = (
    *((Prequential, {option: n}) for option in ("first", "every", "most") for n in COUNTS),
    *(
        (kind, {"refits": n})
        for kind in (SrsBenchmarkRefit, SrsBenchmarkEqualised)
        for n in (4, 7.5)
    ),
    (SrsBenchmarkRefit, {"refits": "many"}),
    *((SrsBenchmarkRefit, {"warm_start": value}) for value in SWITCHES),
    (Prequential, {"warm_start": "no"}),
    *(
        (SrsBenchmarkSecs, {option: value})
        for option in ("answer_time", "previous_answer")
        for value in SWITCHES
    ),
    (SrsBenchmarkSecs, {"answer_time": True, "previous_answer": True}),
    *((Validation, {"share": share}) for share in SHARES),
    (Validation, {"base": Validation()}),
)


def test_names_and_refusals(golden_text):
    lines = [f"{each.name}: version {each.version}, {each.folds} folds" for each in NAMED]
    for kind, options in REFUSED:
        with pytest.raises(SrsEvalError) as refused:
            kind(**options)
        lines.append(f"{kind.__name__} {options}: {refused.value}")
    golden_text("protocol_options", "\n".join(lines) + "\n")
    assert Validation().is_validation
    assert not hasattr(SrsBenchmark(), "is_validation")
