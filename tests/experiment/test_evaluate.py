"""An experiment evaluated in Python, and the same by the command."""

from dataclasses import fields
from functools import partial
from io import StringIO

import pytest
from commands import QUIET, SMALL
from commands import run_here as command
from invented import Logs
from tqdm import tqdm

from srs_eval import results
from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.compute.processes import Processes
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ReviewLogError
from srs_eval.experiment.description import NUMBERS_DEPEND_ON, config_hash
from srs_eval.experiment.evaluate import evaluate
from srs_eval.experiment.experiment import Experiment
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.files import CURVES, PREDICTIONS, SCORES

PANEL = Panel([LogLoss()])


@pytest.fixture
def experiment(logs_of):
    return partial(Experiment, source=logs_of(1, 2), protocol=SrsBenchmark(), panel=PANEL)


@pytest.mark.slow
def test_python_and_the_command_write_the_same_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["algo=fsrs6", "algo.fit=default", *SMALL, *QUIET, "hydra.run.dir=out"]
    assert command(words) == 0
    source = SyntheticUsers(users=2, size_scale=0.02, max_reviews=3000, version=1)
    algorithm = Fsrs6(fit="default")
    result = evaluate(Experiment(algorithm, source, SrsBenchmark(), default_panel()))
    results.save(result, tmp_path / "mine")
    for name in (SCORES, PREDICTIONS, CURVES):
        assert (tmp_path / "mine" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    theirs = results.load(tmp_path / "out").facts
    assert repr(results.load(tmp_path / "mine").facts.metrics) == repr(theirs.metrics)
    assert theirs.config_hash == theirs.tags["config_hash"]


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


def test_the_digest_is_of_the_configuration_of_an_experiment():
    renamed = {"algorithm": "algo", "source": "data"}
    assert tuple(renamed.get(f.name, f.name) for f in fields(Experiment)) == NUMBERS_DEPEND_ON
    content = dict.fromkeys(NUMBERS_DEPEND_ON, 1)
    assert config_hash({**content, "notes": "x"}) == config_hash(content)
    assert config_hash({**content, "seed": 2}) != config_hash(content)
