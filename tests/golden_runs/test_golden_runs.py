"""Whole runs and comparisons give the numbers of release 0.2: see golden_runs.py."""

import json
import sys
from pathlib import Path

import pytest
from public_logs import JOSH

sys.path.append(str(Path(__file__).parent))
from golden_runs import CASES, COMPARED, HERE, differences, recorded, run_case

QUICK = (
    *("hlr on josh", "fsrs7 in fractional days", "fsrs6 under prequential"),
    *("sm2_trainable on josh", "default panel of simulated users", "10k layout", "recorded"),
    *("csv with skipped users", "failing for some users"),
    "three models of twelve users compared",
)
COLLECTION = Path(__file__).parents[3] / "shared" / "data" / "anki-mit" / "collection.anki21"
PARAMETERS = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.nightly)
    for name in (*CASES, *COMPARED)
]


@pytest.mark.parametrize("case", PARAMETERS)
def test_the_numbers_are_those_of_release_0_2(case, real_logs, tmp_path):
    if "data=anki" in CASES.get(case, "") and not COLLECTION.exists():
        pytest.skip("the collection is not here")
    logs = {"JOSH": real_logs / JOSH, "MIT": real_logs / "anki-mit", "ANKI": COLLECTION}
    expected, results = recorded(case), run_case(case, tmp_path, logs)
    assert [*results] == [*expected]
    for name, old in expected.items():
        assert [*differences(name, old, results[name])] == [], name


def test_differences_beyond_a_tolerance_are_found():
    """The contract notices a moved prediction, score, count and mean."""
    name = "hlr on josh"
    old = recorded(name)[name]
    assert [*differences(name, old, old)] == []
    assert [*differences(name, old, {**old, "predictions": old["predictions"] + 1e-5})]
    assert [*differences(name, old, {**old, "counts": {**old["counts"], "users": 2}})]
    scores = {user: [values[0] + 1e-8, *values[1:]] for user, values in old["users"].items()}
    assert [*differences(name, old, {**old, "users": scores})]
    means = {**old["metrics"], "auc": {**old["metrics"]["auc"], "mean_users": 0.5}}
    assert [*differences(name, old, {**old, "metrics": means})]


def test_a_change_is_declared_with_its_case_and_both_values():
    for entry in json.loads((HERE / "changed.json").read_text()):
        assert entry.keys() == {"case", "what", "old", "new", "reason"}
        assert recorded(entry["case"])
