from dataclasses import replace

import numpy as np
import pytest
from cases import rest_nightly
from published import PUBLISHED
from random_logs import further_rows, random_log

from srs_eval.engine.binary_ratings import BinaryRatings
from srs_eval.engine.compiled import compiled
from srs_eval.engine.packing import pack
from srs_eval.engine.recurrent import RecurrentModel

REVIEWS = random_log(np.random.default_rng(0), 30, 12)
MAPPED = replace(REVIEWS, rating=np.where(REVIEWS.rating > 1, 3, 1))
ROWS = further_rows(REVIEWS)


@pytest.mark.parametrize("name", rest_nightly(["fsrs6", "hlr", "fsrs3", "fsrs7", "sbd"], 2))
def test_binary_ratings_show_every_pass_as_good(name):
    model = PUBLISHED[name]
    w = np.array(model.parameters.defaults)
    found = RecurrentModel(BinaryRatings(model), tuple(w))
    expected = RecurrentModel(model, tuple(w))
    np.testing.assert_allclose(
        found.predict(REVIEWS, ROWS), expected.predict(MAPPED, ROWS), rtol=1e-12
    )
    gradients = [
        compiled(equations).gradient(w, pack(reviews, ROWS, weight=np.ones(len(ROWS))))
        for equations, reviews in ((BinaryRatings(model), REVIEWS), (model, MAPPED))
    ]
    np.testing.assert_allclose(gradients[0].loss, gradients[1].loss, rtol=1e-12)
    np.testing.assert_allclose(gradients[0].gradient, gradients[1].gradient, rtol=1e-9, atol=1e-9)


def test_binary_ratings_keep_names_and_bounds():
    model = PUBLISHED["fsrs6"]
    assert BinaryRatings(model).state_names == model.state_names
    assert BinaryRatings(model).parameters is model.parameters
    assert BinaryRatings(model) == BinaryRatings(PUBLISHED["fsrs6"])
    assert hash(BinaryRatings(model)) == hash(BinaryRatings(PUBLISHED["fsrs6"]))
