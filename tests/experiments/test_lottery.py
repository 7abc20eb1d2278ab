"""Draws of the lottery are found again; the tables of the studies hold the rest."""

import numpy as np
import pytest
from months import UNEXPLAINED, reconstructed
from rules import Rule
from simulations import write_collection

from srs_eval.data.anki.collection import AnkiCollection


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_recognised_and_every_answer_accounted_for(tmp_path, rule):
    path = tmp_path / "simulated.anki2"
    write_collection(path, np.random.default_rng(1), cards=80, rule=rule)
    log = AnkiCollection(path).read_with_table(path.stem)
    draws = reconstructed(log, {})
    own = (draws.table["rule"] == rule).to_numpy()
    assert own.sum() > 0.8 * len(own) > 200  # short months are alike
    assert sum(draws.excluded.values()) + len(own) == len(log.reviews)
    assert UNEXPLAINED not in draws.excluded
    row = log.rows[np.searchsorted(log.reviews.row, draws.table["row"])]
    assert (draws.table["days"] == log.revlog.ivl[row])[own].all()
    is_drawn = draws.lots.days == draws.table["days"].to_numpy()[draws.lots.answer]
    assert draws.lots.mean(is_drawn.astype(float)).min() > 0
