"""Words for ratings."""

import pandas as pd
import pytest

from srs_eval.data.ratings import read_ratings
from srs_eval.data.table_options import Reading
from srs_eval.errors import ConfigError


@pytest.mark.parametrize("words", [{"Pass": 3, "pass ": 1}, {1: 3, "1.0": 1}])
def test_words_that_are_read_alike_have_one_rating(words):
    with pytest.raises(ConfigError):
        Reading(ratings=words)
    Reading(ratings=dict.fromkeys(words, 3))


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_mapping_is_advised_only_where_there_are_values_to_map(missing):
    assert "data.ratings" not in read_ratings(pd.Series([3, missing, 1])).hint
    assert "data.ratings={3: N, 7: N}" in read_ratings(pd.Series([3, 7])).hint
    assert "data.ratings={3: N, 7: N}" in read_ratings(pd.Series([3, 7, missing])).hint
