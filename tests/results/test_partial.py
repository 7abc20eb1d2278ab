"""What is kept of each user while a run goes on, and the files that are made of it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from same import assert_same
from saved import load_predictions

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.scoring import EvaluateAndScore, Scores, score_user
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.temporal import Temporal
from srs_eval.nouns import Fit, Part
from srs_eval.nouns.predictions import concatenate
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import Result, Summary, files, save
from srs_eval.results.partial import FinishedUsers

PANEL = Panel([LogLoss(), Auc(), Temporal("violation")])
DEFAULT = Fsrs6(fit="default")


@pytest.fixture
def scored(logs_of):
    def run(*users, algorithm=DEFAULT):
        source = logs_of(*users)
        work = EvaluateUser(source, algorithm, SrsBenchmark(), seed=0, curves=12)
        return [EvaluateAndScore(work, PANEL)(user) for user in source.users()]

    return run


@pytest.fixture
def kept(tmp_path):
    finished = FinishedUsers(tmp_path / "run" / "users", "settings-1")
    finished.open(resume=False)
    return finished


def failed(user=4, reason="why"):
    fit = Fit(user, -1, "failed", reason)
    return score_user(UserEvaluation(user, (fit,), None, ReviewLog(3)), PANEL)


def gather(kept, users, folder):
    """Save a result of which only the predictions matter."""
    nobody = Scores((), np.zeros(0, np.int64), (), (), np.zeros((0, 0)))
    save(Result(Summary(), nobody, (), kept.predicted(users)), folder)


def test_finished_users_come_back_without_their_predictions(kept, scored):
    for number, result in enumerate(scored(7, "ann")):
        log = ReviewLog(result.log.reviews, {"cards": 2}, result.log.fingerprint)
        result = replace(result, log=log)
        kept.save(number, result)
        assert kept.load(number, result.user) == result.put_away()
        predictions = kept.predicted([7, "ann"]).read(result.user)
        assert_same(predictions, result.predictions)


def test_what_is_no_number_comes_back_as_that(kept, scored):
    (result,) = scored(1)
    fits = tuple(replace(fit, standard_errors=(0.5, np.nan)) for fit in result.fits)
    result = replace(result, fits=fits, values=(np.nan, -np.inf, 1 / 3))
    kept.save(0, result)
    assert repr(kept.load(0, 1)) == repr(result.put_away())


def test_the_parts_of_a_fit_come_back(kept, scored):
    (result,) = scored(1)
    parts = (Part("all", "base", (0.5, 1 / 3), (0.1, np.inf), 7, standalone=True, title="a"),)
    result = replace(result, fits=tuple(replace(fit, parts=parts) for fit in result.fits))
    kept.save(0, result)
    assert kept.load(0, 1).fits == result.fits


def test_failed_and_skipped_users_are_finished_too(kept):
    result = failed()
    kept.save(0, result)
    assert kept.load(0, 4) == replace(result, values=kept.load(0, 4).values)
    assert np.isnan(kept.load(0, 4).values).all()
    assert list(kept.predicted([4])) == []


def test_a_user_who_was_not_finished_is_done_again(kept, scored):
    assert kept.load(0, 1) is None
    (result,) = scored(1)
    kept.save(0, result)
    (kept.folder / "000000" / "user.json").unlink()  # written last
    assert kept.load(0, 1) is None
    kept.save(0, failed(1, "crash"))
    assert kept.load(0, 1).fits == failed(1, "crash").fits
    assert list(kept.predicted([1])) == []


def test_predictions_of_all_users_are_gathered_in_order(kept, scored, tmp_path):
    results = scored(3, 1, 2)
    for number in (2, 0, 1):
        kept.save(number, results[number])
    kept.save(3, failed())
    gather(kept, [3, 1, 2, 4], tmp_path)
    expected = concatenate([result.predictions for result in results])
    assert_same(load_predictions(tmp_path), expected)
    for predictions, result in zip(kept.predicted([3, 1, 2, 4]), results, strict=True):
        assert_same(predictions, result.predictions)


def test_users_of_both_kinds_precisions_and_curves_are_gathered(kept, scored, tmp_path):
    (ann,) = scored("ann")
    (one,) = scored(1, algorithm=MovingAverage())
    single = replace(one.predictions, p=one.predictions.p.astype(np.float32))
    kept.save(0, replace(one, predictions=single))
    kept.save(1, ann)
    gather(kept, [1, "ann"], tmp_path)
    expected = concatenate([replace(single, users=("1",)), ann.predictions])
    assert expected.p.dtype == np.float64
    assert_same(load_predictions(tmp_path), expected)


def test_users_of_few_reviews_share_a_row_group(kept, scored, tmp_path):
    for number, result in enumerate(scored(1, 2, 3)):
        kept.save(number, result)
    gather(kept, [1, 2, 3], tmp_path)
    assert pq.ParquetFile(tmp_path / files.PREDICTIONS).num_row_groups == 1


def test_where_nothing_was_predicted_nothing_is_gathered(kept, tmp_path):
    kept.save(0, failed())
    gather(kept, [4], tmp_path)
    assert not (tmp_path / files.PREDICTIONS).exists()


def test_a_run_can_be_continued_with_the_same_settings(kept, scored):
    (result,) = scored(1, algorithm=Average())
    kept.save(3, result)
    again = FinishedUsers(kept.folder, "settings-1")
    again.open(resume=True)
    assert again.load(3, 1).fits == result.fits


def test_a_run_cannot_be_continued_with_other_settings(kept, scored):
    (result,) = scored(1, algorithm=Average())
    kept.save(3, result)
    other = FinishedUsers(kept.folder, "settings-2")
    with pytest.raises(ConfigError, match="other settings"):
        other.open(resume=True)
    assert kept.load(3, 1) is not None


def test_a_new_run_begins_with_nobody_finished(kept, scored):
    (result,) = scored(1, algorithm=Average())
    kept.save(3, result)
    kept.open(resume=False)
    assert kept.load(3, 1) is None


def test_there_is_nothing_to_continue_in_an_empty_folder(tmp_path):
    finished = FinishedUsers(tmp_path / "users", "settings-1")
    finished.open(resume=True)
    assert finished.load(0, 1) is None
    finished.remove()
    assert not (tmp_path / "users").exists()
    finished.remove()


@pytest.mark.parametrize("name", ["user.json", "predictions.arrow", "curves.arrow"])
def test_what_was_kept_of_a_user_and_is_gone_is_an_error(kept, scored, tmp_path, name):
    results = scored(1, 2)
    for number, result in enumerate(results):
        kept.save(number, result)
    (kept.folder / "000001" / name).unlink()
    with pytest.raises(SrsEvalError, match="another program has changed"):
        gather(kept, [1, 2], tmp_path)
    with pytest.raises(SrsEvalError, match="another program has changed"):
        kept.predicted([1, 2]).read(2)


def test_fewer_rows_than_were_kept_are_an_error(kept, scored, tmp_path):
    for number, result in enumerate(scored(1, 2)):
        kept.save(number, result)
    first, second = (kept.folder / f"00000{n}" / "predictions.arrow" for n in range(2))
    assert pa.ipc.open_file(first).read_all().num_rows > 0
    with pa.OSFile(str(second), "wb") as sink:
        table = pa.ipc.open_file(first).read_all().slice(1)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(SrsEvalError, match="another program has changed"):
        gather(kept, [1, 2], tmp_path)
    assert not (tmp_path / files.PREDICTIONS).exists()
