"""Words for ratings."""

import pytest

from srs_eval.data.table_options import Reading
from srs_eval.errors import ConfigError


@pytest.mark.parametrize("words", [{"Pass": 3, "pass ": 1}, {1: 3, "1.0": 1}])
def test_words_that_are_read_alike_have_one_rating(words):
    with pytest.raises(ConfigError):
        Reading(ratings=words)
    Reading(ratings=dict.fromkeys(words, 3))
