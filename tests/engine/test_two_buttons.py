from dataclasses import replace

import numpy as np
import pytest
from published import PUBLISHED
from random_logs import further_rows, random_log

from srs_eval.engine.compiled import compiled
from srs_eval.engine.packing import pack
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.engine.two_buttons import TwoButtons

REVIEWS = random_log(np.random.default_rng(0), 30, 12)
MAPPED = replace(REVIEWS, rating=np.where(REVIEWS.rating > 1, 3, 1))
ROWS = further_rows(REVIEWS)


@pytest.mark.parametrize("name", ["fsrs3", "fsrs6", "fsrs7", "sbd", "hlr"])
def test_two_buttons_see_every_pass_as_good(name):
    model = PUBLISHED[name]
    w = np.array(model.parameters.defaults)
    found = RecurrentModel(TwoButtons(model), tuple(w))
    expected = RecurrentModel(model, tuple(w))
    np.testing.assert_allclose(
        found.predict(REVIEWS, ROWS), expected.predict(MAPPED, ROWS), rtol=1e-12
    )
    gradients = [
        compiled(equations).gradient(w, pack(reviews, ROWS, weight=np.ones(len(ROWS))))
        for equations, reviews in ((TwoButtons(model), REVIEWS), (model, MAPPED))
    ]
    np.testing.assert_allclose(gradients[0].loss, gradients[1].loss, rtol=1e-12)
    np.testing.assert_allclose(gradients[0].gradient, gradients[1].gradient, rtol=1e-9, atol=1e-9)


def test_two_buttons_keep_names_and_bounds():
    model = PUBLISHED["fsrs6"]
    assert TwoButtons(model).state_names == model.state_names
    assert TwoButtons(model).parameters is model.parameters
    assert TwoButtons(model) == TwoButtons(PUBLISHED["fsrs6"])
    assert hash(TwoButtons(model)) == hash(TwoButtons(PUBLISHED["fsrs6"]))
