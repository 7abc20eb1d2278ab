"""An experiment evaluated in Python."""

import importlib
from dataclasses import fields
from functools import partial
from io import StringIO

import pytest
from invented import Logs
from tqdm import tqdm

from srs_eval.algorithms.baselines import Average
from srs_eval.compute.processes import Processes
from srs_eval.errors import FailedAlikeError, ReviewLogError
from srs_eval.evaluation.limits import FitLimits
from srs_eval.experiment.description import NUMBERS_DEPEND_ON, _code_hash, config_hash
from srs_eval.experiment.evaluate import evaluate
from srs_eval.experiment.experiment import Experiment
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.protocol.srs_benchmark import SrsBenchmark

PANEL = Panel([LogLoss()])


@pytest.fixture
def experiment(logs_of):
    return partial(Experiment, source=logs_of(1, 2), protocol=SrsBenchmark(), panel=PANEL)


def test_nothing_is_printed_and_progress_goes_to_the_bar_that_is_given(experiment, capfd):
    bars = []

    def bar(**options):
        bars.append(tqdm(**options, file=StringIO()))
        return bars[-1]

    evaluate(experiment(Average()), progress=bar)
    assert [(bar.n, bar.total) for bar in bars] == [(10, 10)]
    evaluate(experiment(Average()))
    assert capfd.readouterr() == ("", "")


def test_some_users_can_be_chosen_and_evaluated_elsewhere(experiment):
    whole = evaluate(experiment(Average()))
    other = evaluate(experiment(Average()), [2], compute=Processes(workers=1))
    assert other.complete == (2,)
    assert other.by_user.values.tolist() == whole.by_user.values[1:].tolist()


def test_each_log_is_read_once_and_a_source_without_users_is_refused(experiment):
    class Counting(Logs):
        reads = []

        def read(self, user):
            self.reads.append(user)
            return super().read(user)

    source = Counting(experiment(Average()).source.logs)
    evaluate(experiment(Average(), source=source))
    assert source.reads == [1, 2]
    with pytest.raises(ReviewLogError):
        evaluate(experiment(Average(), source=Logs({})))


class WorksForOne(Average):
    """Raises an error of the program for all users but one."""

    def fit(self, reviews, rows, rng):
        if reviews.user == 3:
            return super().fit(reviews, rows, rng)
        raise ValueError("no")


def test_an_evaluation_goes_on_once_a_fit_has_worked(experiment, logs_of):
    limits = FitLimits(fail_fast=True)
    source = logs_of(1, 3, 4, 5, 6)
    result = evaluate(experiment(WorksForOne(), source=source), limits=limits)
    assert (result.complete, result.facts.failed) == ((3,), 20)
    with pytest.raises(FailedAlikeError):
        evaluate(experiment(WorksForOne(), source=logs_of(4, 5, 6, 3)), limits=limits)


def test_the_digest_is_of_the_configuration_of_an_experiment():
    renamed = {"algorithm": "algo", "source": "data"}
    assert tuple(renamed.get(f.name, f.name) for f in fields(Experiment)) == NUMBERS_DEPEND_ON
    content = dict.fromkeys(NUMBERS_DEPEND_ON, 1)
    assert config_hash({**content, "notes": "x"}) == config_hash(content)
    assert config_hash({**content, "seed": 2}) != config_hash(content)


def test_the_digest_of_the_code_is_of_the_files_of_what_is_used(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file, own = tmp_path / "of_a_plug_in.py", _code_hash([])
    found = set()
    for content in ("1", "2"):
        file.write_text(f"class Mine:\n    number = {content}\n")
        found.add(_code_hash([importlib.import_module(file.stem).Mine(), Average()]))
    assert len({own, *found}) == 3
    assert _code_hash([Average()]) == own
