"""`experiments/seed_table/reproduce.py`: altered rows come out, and equal ones are called equal."""

import pandas as pd
import pytest
from seed_table.reproduce import verdict


@pytest.mark.parametrize(
    ("column", "moved", "expected"),
    [
        *(("size", 1, "other reviews"), ("AUC", 1e-6, "equal"), ("AUC", 1e-4, "within 0.0005")),
        *(("LogLoss", 4e-4, "within 0.0005"), ("LogLoss", 6e-4, "differs")),
    ],
)
def test_altered_rows_are_told_from_equal_ones(column, moved, expected):
    theirs = pd.DataFrame({"size": [90, 80], "LogLoss": [0.3, 0.4], "AUC": [0.7, 0.6]})
    told = verdict(theirs.assign(**{column: theirs[column] + moved}), theirs)
    assert (told["verdict"], told["users"]) == (expected, 2)
