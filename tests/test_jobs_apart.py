"""Jobs of a sweep share no state: what one has learned from its test rows helps no other."""

from __future__ import annotations

import os

import numpy as np
import offenders
import pyarrow.parquet as pq
import pytest
from commands import QUIET, SMALL

from srs_eval.compute.processes import Processes
from srs_eval.errors import Pruned


@pytest.mark.slow
def test_cards_learned_in_a_job_are_unknown_in_the_next(here, monkeypatch):
    # The run outside a sweep is in this process, where other tests may have filled the table.
    monkeypatch.setattr(offenders, "_LAPSES", {})
    (here.folder / "own/algo").mkdir(parents=True)
    text = "_target_: offenders.KeepsATableOfCards\n"
    (here.folder / "own/algo/cards.yaml").write_text(text, encoding="utf-8")
    # The check of a class fits it once, and this one keeps what it learned there, too.
    words = ("--config-dir=own", "algo=cards", "check_lookahead=false", *SMALL, *QUIET)
    alone = here(*words, "hydra.run.dir=alone")
    sweep = here("-m", *words, "seed=0,1", "hydra.sweep.dir=out")
    assert (alone.status, sweep.status) == (0, 0), alone.text + sweep.text
    folders = [here.folder / "alone", *sorted((here.folder / "out").glob("*_cards"))]
    assert len(folders) == 3
    p = [pq.read_table(folder / "predictions.parquet")["p"].to_numpy() for folder in folders]
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_array_equal(p[1], p[2])


class ShowsSteps:
    """Work whose steps are shown to the parent, which may end it."""

    def __call__(self, user, tick):
        tick()
        for step in (1, 2, 3):
            tick(step, (user, os.getpid()))
        tick()
        return user, os.getpid()


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, 1])
def test_steps_in_a_worker_are_shown_where_the_search_is_which_may_end_it(most):
    seen = []

    def tick(*step):
        seen.append(step)
        if step and step[0] > most:
            raise Pruned("not worth going on with")

    users = ["a", "b", "c"][:most]
    mapped = Processes(workers=most).map(
        ShowsSteps(), users, on_crash=lambda user, reason: reason, tick=tick
    )
    if most == 1:
        with pytest.raises(Pruned):
            list(mapped)
        assert [step for step, _ in filter(None, seen)] == [1, 2]
        return
    process = dict(mapped)
    assert sorted(process) == users
    assert os.getpid() not in process.values()
    for user, pid in process.items():
        assert [step for step, *what in filter(None, seen) if what == [(user, pid)]] == [1, 2, 3]
    assert seen.count(()) == 6
