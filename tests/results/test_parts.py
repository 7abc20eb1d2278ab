"""The parts of chunks of users, and the files that are made of them."""

import os
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import rest_nightly
from invented import Logs, invented_log
from numpy.testing import assert_array_equal
from saved import InMemory, assert_same, result_from

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.compute.processes import Processes
from srs_eval.compute.serial import Serial
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.scoring import EvaluateAndScore, score_user
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.temporal import Temporal
from srs_eval.nouns import Fit, Part
from srs_eval.place import Place
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import files, load, save
from srs_eval.results.kept import KeptParts, has_parts, kept_for_good
from srs_eval.results.parts import KINDS, PARTS, USERS, Chunk, chunk_size, cut, part_of
from srs_eval.results.predicted import PartPredictions
from srs_eval.results.user_rows import of_all_users
from srs_eval.run.evaluate import Evaluation, evaluate
from srs_eval.run.experiment import Experiment

PANEL = Panel([LogLoss(), Auc(), Temporal("violation")])
DEFAULT = Fsrs6(fit="default")
STAMP = "settings-1"
# As many results as tests of the way parts are kept need, and no more.
USERS_OF_RUN = (7, 3, "ann", 1, 2)


@pytest.fixture
def scored(logs_of):
    def run(*users, algorithm=DEFAULT):
        source = logs_of(*users)
        work = EvaluateUser(source, algorithm, SrsBenchmark(), seed=0, curves=12)
        return [EvaluateAndScore(work, PANEL)(user) for user in source.users()]

    return run


@pytest.fixture
def kept(tmp_path):
    return begun(tmp_path / "run" / "parts")


def begun(folder, stamp=STAMP, chunk=2):
    parts = KeptParts(folder, stamp)
    parts.open(resume=False, chunk=chunk)
    return parts


def nothing(user=4):
    fit = Fit(user, -1, "failed", "why")
    return UserEvaluation(user, (fit,), None, ReviewLog(3))


def keep(kept, *results, size=9):
    """Keep results in chunks, and return the names of the parts."""
    by_user = {result.user: result for result in results}
    chunks = cut([result.user for result in results], size)
    for chunk in chunks:
        kept.keep(chunk, part_of([by_user[user] for user in chunk.users], PANEL))
    return [chunk.name for chunk in chunks]


def predicted(kept, names):
    return PartPredictions(kept, names)


@pytest.fixture
def experiment(make_log):
    logs = {user: make_log(user=user) for user in USERS_OF_RUN}
    return partial(Experiment, source=Logs(logs), protocol=SrsBenchmark(), panel=PANEL)


def test_chunks_have_one_user_in_small_runs_and_names_of_their_own():
    users = (1, 999, 1999, 2000, 10_000, 49_999, 50_000, 10**6)
    assert [chunk_size(n) for n in users] == [1, 1, 1, 2, 10, 49, 50, 50]
    assert chunk_size(10**6, 7) == 7
    assert [chunk.users for chunk in cut([1, 2, "1", 3, "ü"], 2)] == [(1, 2), ("1", 3), ("ü",)]
    assert len({Chunk((1,)).name, Chunk(("1",)).name, Chunk((1, 2)).name, Chunk((12,)).name}) == 4


def test_results_come_back_as_they_were(kept, scored):
    results = [
        replace(result, log=replace(result.log, left_out={"cards": 2}, notes=("a", "b")))
        for result in scored(7, "ann")
    ]
    parts = (Part("all", "base", (0.5, 1 / 3), (0.1, np.inf), 7, standalone=True, title="a"),)
    odd = tuple(replace(fit, parts=parts, standard_errors=(np.nan,)) for fit in results[0].fits)
    results[0] = replace(results[0], fits=odd, values=(np.nan, -np.inf, 1 / 3))
    results.append(score_user(nothing(), PANEL))
    names = keep(kept, *results, size=2)
    assert repr(list(predicted(kept, names).fits())) == repr(
        [fit for r in results for fit in r.fits]
    )
    assert predicted(kept, names).read(4) is None
    for result in results[:2]:
        assert_same(predicted(kept, names).read(result.user), result.predictions)
    scores, facts = of_all_users((kept.read(name, USERS) for name in names), PANEL.names)
    assert scores.users == (7, "ann", 4)
    expected = np.array([result.values for result in results])
    assert scores.values.tobytes() == expected.tobytes()
    assert scores.complete == (7, "ann")
    assert facts.left_out == {"cards": 4}
    assert facts.notes == ("user 7: a", "user 7: b", "user ann: a", "user ann: b")
    assert (facts.fits, facts.failed) == (11, 1)
    assert facts.fit_notes == ("user 4: why",)


def test_a_run_goes_on_with_the_chunks_it_began_with(kept, scored):
    (name,) = keep(kept, *scored(1, 2, algorithm=Average()))
    again = KeptParts(kept.folder, STAMP)
    again.open(resume=True, chunk=5)
    assert again.chunk == 2
    assert again.users_if_whole(Chunk((1, 2))) is not None
    assert again.users_if_whole(Chunk((1,))) is None
    again.open(resume=False, chunk=5)
    assert again.chunk == 5
    assert not again.file(name, USERS).exists()


@pytest.mark.parametrize("kept_share", [None, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_part_is_made_again_before_the_end_and_an_error_afterwards(
    kept, scored, kind, kept_share
):
    results = scored(1, 2, algorithm=Average())
    (name,) = keep(kept, *results)
    chunk, file = Chunk((1, 2)), kept.file(name, kind)
    content = file.read()
    file.remove()
    if kept_share is not None:
        file.write(content[: int(kept_share * len(content))])
    assert kept.users_if_whole(chunk) is None
    with pytest.raises(SrsEvalError):
        kept.read(name, kind)
    keep(kept, *results)
    assert kept.users_if_whole(chunk) is not None


@pytest.mark.parametrize("renames", range(len(KINDS)))
def test_a_part_that_is_replaced_only_in_part_is_not_whole(kept, scored, monkeypatch, renames):
    keep(kept, *scored(1, 2))
    left, rename = iter(range(renames)), os.replace

    def fails(path, target):
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        rename(path, target)

    others = scored(1, 2, algorithm=Fsrs6(fit="s0"))
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        keep(kept, *others)
    assert kept.users_if_whole(Chunk((1, 2))) is None


@pytest.mark.parametrize("size", [1, 2, 9])
def test_users_of_both_kinds_precisions_and_curves_are_gathered(kept, scored, tmp_path, size):
    results = scored(1, "ben", 3, 5, 6)
    single = results[0].predictions.p.astype(np.float32)
    results[0] = replace(results[0], predictions=replace(results[0].predictions, p=single))
    for number in (1, 3):
        bare = replace(results[number].predictions, curves=None)
        results[number] = replace(results[number], predictions=bare)
    results.insert(2, score_user(nothing(), PANEL))
    names = keep(kept, *results, size=size)
    save(replace(result_from([nothing()], PANEL), predicted=predicted(kept, names)), tmp_path)
    saved = load(tmp_path).predicted
    assert saved.users == ("1", "ben", "3", "5", "6")
    for result in results:
        found = predicted(kept, names).read(result.user)
        if result.predictions is None:
            assert found is None
        else:
            p = result.predictions.p.astype(np.float64)
            wanted = replace(result.predictions, p=p)
            assert_same(replace(found, p=found.p.astype(np.float64)), wanted)
            wanted = replace(result.predictions, users=(str(result.user),), p=p)
            assert_same(saved.read(str(result.user)), wanted)


def test_users_go_by_text_in_every_file_if_one_without_predictions_has_a_name(scored, tmp_path):
    both = scored(1, 2, algorithm=Average())
    evaluations = [UserEvaluation(one.user, one.fits, one.predictions, one.log) for one in both]
    found = load(save(result_from([*evaluations, nothing("ann")], PANEL), tmp_path).folder)
    assert found.by_user.users == ("1", "2", "ann")
    assert found.complete == found.predicted.users == ("1", "2")


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_of_another_run_or_of_other_users_is_not_taken(kept, scored, tmp_path, kind):
    results = scored(1, 2)
    (name,) = keep(kept, *results)
    file = kept.file(name, kind)
    mine = file.read()
    for stamp, order in (("settings-2", results), (STAMP, results[::-1])):
        other = begun(tmp_path / stamp, stamp)
        (theirs,) = keep(other, *order)
        file.write(other.file(theirs, kind).read())
        assert kept.users_if_whole(Chunk((1, 2))) is None  # though it has as many rows
    if kind != USERS:  # as an earlier version has written it
        table = pq.read_table(pa.BufferReader(mine)).replace_schema_metadata(None)
        pq.write_table(table, file.local)
        assert kept.users_if_whole(Chunk((1, 2))) is not None
    file.write(mine)
    for each in KINDS:
        kept.file(Chunk((1, 3)).name, each).write(kept.file(name, each).read())
    assert kept.users_if_whole(Chunk((1, 3))) is None


def run(experiment, folder, compute, size=None, *, stay=False):
    users = list(experiment.source.users())
    parts = KeptParts(folder / "parts", STAMP, stays_above=0 if stay else 1000)
    parts.open(resume=False, chunk=chunk_size(len(users), size))
    chunks = cut(users, parts.chunk)
    evaluation = Evaluation(experiment, chunks, parts, compute)
    evaluation.run()
    save(evaluation.result(stay=folder if stay else None), folder)
    parts.end(chunks if stay else ())
    return load(folder)


@pytest.mark.parametrize(
    ("compute", "size", "stay"),
    rest_nightly(
        [
            *((Serial(), 3, False), (Processes(2), 2, True), (Processes(2), 2, False)),
            *((Processes(1), 1, False), (Serial(), 9, False), (Serial(), 2, True)),
        ],
        2,
    ),
)
def test_files_are_equal_for_each_way_to_compute_any_chunk_and_parts_that_stay(
    experiment, tmp_path, compute, size, stay
):
    expected = save(evaluate(experiment(DEFAULT)), tmp_path / "memory")
    found = run(experiment(DEFAULT), tmp_path / "found", compute, size, stay=stay)
    assert repr(found.facts) == repr(expected.facts)
    assert (found.folder / files.PREDICTIONS).exists() != stay
    if stay:
        wanted = load(expected.folder).predicted.read("ann")
        assert_same(copy(found.predicted).read("ann"), wanted)
        assert len(found.fitted) == 25
        assert found.fitted[3].fold == 3
        found = save(found, tmp_path / "elsewhere")
    for name in (files.PREDICTIONS, files.CURVES, files.SCORES):
        assert (found.folder / name).read_bytes() == (expected.folder / name).read_bytes(), name
    ours, theirs = (
        [replace(fit, seconds=0.0) for fit in load(each.folder).fitted]
        for each in (found, expected)
    )
    assert ours == theirs


def test_pooled_scores_are_of_sums_and_no_prediction_is_read_again(experiment, monkeypatch):
    def again(*_):
        raise AssertionError("predictions of all users at once")

    monkeypatch.setattr(PartPredictions, "of", again)
    assert evaluate(experiment(Average())).facts.metrics["auc"].pooled > 0


def test_parts_are_forgotten_where_another_result_is_saved(experiment, tmp_path):
    found = run(experiment(Average()), tmp_path, Serial(), stay=True)
    save(replace(found, predicted=InMemory({})), tmp_path)
    assert load(tmp_path).predicted.users == ()


class DyingWorkers:
    """Does the work in this process, the last item first; those with some user are lost."""

    def __init__(self, dying, chunk=None):
        self.dying = dying
        self.chunk = chunk

    def map(self, work, items, *, on_crash, tick):
        for item in reversed(items):
            is_lost = self.dying in item.users
            yield on_crash(item, "died") if is_lost else work(item, tick)


@pytest.mark.parametrize("dying", USERS_OF_RUN)
@pytest.mark.parametrize("size", rest_nightly([3, 5]))
def test_users_keep_their_order_if_a_worker_dies_anywhere_in_a_chunk(
    experiment, tmp_path, dying, size
):
    one = experiment(Average())
    whole = evaluate(one)
    in_memory = evaluate(one, compute=DyingWorkers(dying, size))
    saved = run(one, tmp_path, DyingWorkers(dying), size, stay=True)
    left = tuple(user for user in USERS_OF_RUN if user != dying)
    for found, name in ((in_memory, lambda user: user), (saved, str)):
        assert found.by_user.users == tuple(map(name, USERS_OF_RUN))
        assert found.complete == found.predicted.users == tuple(map(name, left))
        for place, user in enumerate(USERS_OF_RUN):
            mine = [fit for fit in found.fitted if fit.user == name(user)]
            assert [fit.status for fit in mine] == (["failed"] if user == dying else ["ok"] * 5)
            expected = np.nan if user == dying else whole.by_user.values[place]
            assert_array_equal(found.by_user.values[place], expected)
            if user != dying:
                wanted = replace(whole.predicted.read(user), users=(name(user),))
                assert_same(found.predicted.read(name(user)), wanted)
    order = list(dict.fromkeys(str(fit.user) for fit in saved.fitted))
    assert order == [str(user) for user in USERS_OF_RUN]
    assert len([*(tmp_path / PARTS / "users").iterdir()]) == len(cut([*USERS_OF_RUN], size))


def test_only_users_whose_log_has_changed_are_evaluated_again(kept):
    logs = {user: invented_log(user=user, seed=user) for user in (2, 3, 4)}
    chunks = cut(list(logs), 2)

    def evaluated(logs):
        fitted = []

        class Watched(Average):
            def fit(self, reviews, rows, rng):
                fitted.append(reviews.user)
                return super().fit(reviews, rows, rng)

        one = Experiment(Watched(), Logs(logs), SrsBenchmark(), PANEL)
        before = Evaluation(one, chunks, kept).run()
        return sorted(set(fitted)), before

    assert evaluated(logs) == ([2, 3, 4], 0)
    assert evaluated(logs) == ([], 3)
    other = np.where(np.arange(len(logs[4])) == 7, 1, logs[4].rating)
    assert (other != logs[4].rating).any()
    logs = {**logs, 4: replace(logs[4], rating=other)}
    assert evaluated(logs) == ([4], 2)
    assert evaluated(logs) == ([], 3)


def test_parts_elsewhere_are_of_one_run(tmp_path, scored):
    def kept(run, stamp=STAMP, at=tmp_path / "parts"):
        return KeptParts(tmp_path / run / "parts", stamp, at=at and Place.of(at))

    def are(parts):
        return parts.is_begun, has_parts(parts.folder.parent)

    mine, theirs, chunk = kept("mine"), kept("theirs"), Chunk((1,))
    mine.open(resume=False, chunk=1)
    assert are(mine) == (True, True)
    keep(mine, *scored(1, algorithm=Average()))
    refused = [(theirs, False), (kept("theirs", "settings-2"), False)]
    refused += [(kept("theirs", "settings-2"), True)]
    refused += [(kept("mine", at=None), True), (kept("mine", at="x"), True)]
    for other, resume in refused:
        with pytest.raises(ConfigError):
            other.check(resume=resume)
    theirs.open(resume=True, chunk=1)  # on a machine that goes on in place of another
    assert theirs.users_if_whole(chunk) is not None
    mine.open(resume=False, chunk=1)
    assert mine.users_if_whole(chunk) is None
    keep(mine, *scored(1, algorithm=Average()))
    mine.list_results([chunk])
    assert are(mine) == (True, True)
    mine.end([chunk])
    assert are(mine) == (False, False)
    found = kept_for_good(tmp_path / "mine", as_text=False)
    assert (found.users, len([*found.fits()])) == ((1,), 5)
    with pytest.raises(ConfigError):
        kept("another").check(resume=False)
    kept("another").open(resume=True, chunk=1)  # as if the folder of the run had been lost
    mine.remove()
    assert kept("another").users_if_whole(chunk) is not None
    mine.open(resume=False, chunk=1)
    mine.end()
    assert kept_for_good(tmp_path / "mine", as_text=False) is None
    assert not any((tmp_path / name).exists() for name in ("parts", "mine/parts"))


def test_a_machine_that_does_not_see_the_folder_of_a_run_evaluates_nothing(kept):
    kept.remove()
    with pytest.raises(SrsEvalError, match="share"):
        kept.users_if_whole(Chunk((1,)))


def test_a_state_that_is_damaged_is_refused_with_its_file(kept):
    (kept.folder / "parts.json").unlink()
    begun, ended = '"state": "begun"', '"state": "ended"'
    states = ["[1]", '{"state": 5}', f"{{{begun}}}", f'{{{begun}, "stamp": "a"}}', '{"x": 1}']
    states += [f'{{{begun}, "at": 3}}', f'{{{ended}, "parts": "abc"}}']
    stamps = ['{"x": 1}', '{"stamp": 1, "chunk": 2}', "{"]
    for file, texts in {"parts.json": states, "stamp.json": stamps}.items():
        for text in texts:
            (kept.folder / file).write_text(text, encoding="utf-8")
            with pytest.raises(ConfigError, match=file):
                kept.check(resume=True)
            with pytest.raises(ConfigError, match=file):
                kept_for_good(kept.folder.parent, as_text=False)
        (kept.folder / file).unlink()


def test_parts_that_release_0_2_has_left_are_resumed_refused_or_read(tmp_path, scored):
    def left(name, **files_left):
        folder = tmp_path / name / PARTS
        kept = begun(folder)
        (part,) = keep(kept, *scored(1, 2, algorithm=Average()))
        (folder / "parts.json").unlink()
        for file, content in files_left.items():
            listed = {"parts": [part]} if file == "parts" else {}
            files.write_json(folder / f"{file}.json", {**content, **listed})
        return kept

    stamp = {"stamp": STAMP, "chunk": 2}
    for name, manifest in (("begun", {}), ("listed", {"parts": {"stamp": STAMP, "goes_on": True}})):
        kept = left(name, stamp=stamp, **manifest)
        assert kept.is_begun
        with pytest.raises(ConfigError, match="other settings or other code"):
            KeptParts(kept.folder, "settings-2").check(resume=True)
        kept.open(resume=True, chunk=5)
        assert kept.chunk == 2
        assert kept.users_if_whole(Chunk((1, 2))) is not None
        kept.end()
        assert not kept.folder.exists()
    ended = left("ended", parts={"stamp": STAMP})
    assert not ended.is_begun
    found = kept_for_good(ended.folder.parent, as_text=False)
    assert (found.users, len([*found.fits()])) == ((1, 2), 10)
    deleting = left("deleting", stamp={"stamp": ""})
    assert not deleting.is_begun
    deleting.open(resume=True, chunk=5)
    assert deleting.chunk == 5
    assert deleting.users_if_whole(Chunk((1, 2))) is None
