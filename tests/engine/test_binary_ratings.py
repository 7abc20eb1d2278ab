from dataclasses import replace

import numpy as np
from published import PUBLISHED
from random_logs import further_rows, random_log

from srs_eval.engine.binary_ratings import BinaryRatings
from srs_eval.engine.compiled import compiled
from srs_eval.engine.packing import pack
from srs_eval.engine.recurrent import RecurrentModel

REVIEWS = random_log(np.random.default_rng(0), 30, 12)
MAPPED = replace(REVIEWS, rating=np.where(REVIEWS.rating > 1, 3, 1))
ROWS = further_rows(REVIEWS)


def test_binary_ratings_show_every_pass_as_good():
    for name in ("FSRS-6", "HLR"):
        model = PUBLISHED[name]
        w = np.array(model.parameters.defaults)
        predictions, losses, gradients = [], [], []
        for equations, reviews in ((BinaryRatings(model), REVIEWS), (model, MAPPED)):
            predictions.append(RecurrentModel(equations, tuple(w)).predict(reviews, ROWS))
            packed = pack(reviews, ROWS, weight=np.ones(len(ROWS)))
            loss, gradient = compiled(equations).gradient(w, packed)
            losses.append(loss)
            gradients.append(gradient)
        np.testing.assert_allclose(*predictions, rtol=1e-12)
        np.testing.assert_allclose(*losses, rtol=1e-12)
        np.testing.assert_allclose(*gradients, rtol=1e-9, atol=1e-9)
        assert BinaryRatings(model).state_names == model.state_names
        assert BinaryRatings(model).parameters is model.parameters
