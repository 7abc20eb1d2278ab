"""Draws of the lottery are found again, and every study is loaded; its tables hold the rest."""

import os
import random
import sys

import numpy as np
import pytest
from anki_files import DAY_MS
from cases import ROOT
from commands import process
from months import SEED, UNEXPLAINED, reconstructed
from rules import Rule
from simulations import write_collection

from srs_eval.data.anki.collection import AnkiCollection


def log_of(path):
    return AnkiCollection(path).read_with_table(path.stem)


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_recognised_and_every_answer_accounted_for(tmp_path, rule):
    path = tmp_path / "simulated.anki2"
    write_collection(path, np.random.default_rng(1), cards=80, rule=rule)
    log = log_of(path)
    draws = reconstructed(log, {})
    own = (draws.table["rule"] == rule).to_numpy()
    assert own.sum() > 0.8 * len(own) > 200  # short months are alike
    assert sum(draws.excluded.values()) + len(own) == len(log.reviews)
    assert UNEXPLAINED not in draws.excluded
    row = log.rows[np.searchsorted(log.reviews.row, draws.table["row"])]
    assert (draws.table["days"] == log.revlog.ivl[row])[own].all()
    is_drawn = draws.lots.days == draws.table["days"].to_numpy()[draws.lots.answer]
    assert draws.lots.mean(is_drawn.astype(float)).min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("balanced", [False, True])
def test_draws_of_anki_itself_are_reconstructed(anki_library, tmp_path, balanced):
    """Answers in today's Anki, whose calendar moves on between them."""
    path, rng = tmp_path / "anki.anki2", random.Random(1)
    opened = anki_library.Collection(str(path))
    opened.set_config("loadBalancerEnabled", balanced)
    config = opened.decks.get_config(1)
    config["new"]["perDay"] = config["rev"]["perDay"] = 9999
    config["lapse"]["delays"] = []
    opened.decks.update_config(config)
    for number in range(60):
        note = opened.new_note(opened.models.by_name("Basic"))
        note["Front"] = str(number)
        opened.add_note(note, 1)
    for days in (1, 4, 2, 7, 15, 4, 30, 7, 15, 30):
        first = opened.db.scalar("select count() from revlog") == 0
        while card := opened.sched.getCard():
            opened.sched.answerCard(card, 4 if first else rng.choice([2, 3, 3, 4, 1]))
        opened.db.execute("update col set crt = crt - ?", days * DAY_MS // 1000)
        opened.db.execute("update revlog set id = id - ?", days * DAY_MS)
        opened.close()
        opened = anki_library.Collection(str(path))
    opened.close()
    draws = reconstructed(log_of(path), {})
    assert len(draws.table) > 80
    assert set(draws.table["rule"]) == {SEED if balanced else Rule.V3}
    assert draws.months["matched"].min() == 1


@pytest.mark.slow
def test_every_benchmark_and_study_can_be_imported(tmp_path):
    """No type checker reads them: a name that the package has no longer would be noticed late."""
    files = [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("experiments/**/*.py")]
    folders = [ROOT, ROOT / "tests", *sorted({file.parent for file in files})]
    code = "import sys; from cases import loaded; [loaded(file) for file in sys.argv[1:]]"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = process([sys.executable, "-c", code, *map(str, files)], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
