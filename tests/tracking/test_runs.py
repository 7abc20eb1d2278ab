"""Runs as they are found again in MLflow, and the fitted model, which gives the curves it gave."""

import contextlib
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import sklearn.metrics
from cases import refusal
from commands import SMALL, apart, run_here, summary_of
from mlflow_store import runs_in

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.config.rebuild import rebuilt_model
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.mlflow_plugins.curves_of_cards import CurvesOfCards
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.tracking import view

DAYS = (1.0, 5.0, 30.0)
FSRS6 = "srs_eval.algorithms.fsrs.fsrs6.Fsrs6"
OPTIONS = {"_target_": FSRS6, "fit": "newton", "parameters": None}


class Question:
    """The last review of each card of a user, whose history is known and recall asked for."""

    def __init__(self, parameters):
        algorithm = Fsrs6(fit="default", parameters=parameters)
        source = SyntheticUsers(users=2, size_scale=0.02, max_reviews=3000)
        task = SrsBenchmark()(source.read(1), same_day=algorithm.same_day)
        reviews = task.reviews
        rows = np.array([np.flatnonzero(reviews.card == card)[-1] for card in set(reviews.card)])
        rows = rows[reviews.elapsed_days[rows] >= 0]  # cards with a history
        model = algorithm.fit(reviews, task.folds[-1].train, np.random.default_rng(0))
        p = model.predict_at(reviews, rows, np.tile(DAYS, (len(rows), 1)))
        self.answer = {
            (int(reviews.card[row]), day): p[number, place]
            for number, row in enumerate(rows)
            for place, day in enumerate(DAYS)
        }
        columns = {"card": reviews.card, "elapsed_days": reviews.elapsed, "rating": reviews.rating}
        is_known = np.isin(reviews.card, reviews.card[rows])
        is_known[rows] = False
        self.histories = pd.DataFrame(columns)[is_known].reset_index(drop=True)

    def is_answered_by(self, curves):
        given = curves.set_index(["card", "days"])["recall"]
        assert set(given.index) == set(self.answer)
        return all(abs(given[asked] - p) < 1e-12 for asked, p in self.answer.items())


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Runs of two algorithms, one of which cannot be built from its parameters."""
    folder = tmp_path_factory.mktemp("kept")
    words = ["tracking.model=true", "figures=false", "hydra.sweep.dir=out"]
    done = apart(folder, "-m", "algo=fsrs6,avg", *SMALL, *words)
    assert done.status == 0, done.text
    client, runs = runs_in(folder)
    return folder, client, {run.data.tags["label"]: run for run in runs}


@pytest.mark.slow
def test_a_model_is_logged_with_its_scores_where_it_can_be_built_again(kept):
    folder, client, runs = kept
    assert runs["fsrs6"].data.tags["model"] == "kept: user 1, fold 4"
    assert runs["avg"].data.tags["model"].startswith("not kept: ")
    assert runs["avg"].outputs.model_outputs == []
    (output,) = runs["fsrs6"].outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    assert (model.status, model.name, model.tags["algorithm"]) == ("READY", "fsrs6", "fsrs6")
    assert model.source_run_id == runs["fsrs6"].info.run_id
    assert "_target_" in model.params
    files = [path.name for path in Path(model.artifact_location.removeprefix("file://")).rglob("*")]
    assert {"MLmodel", "memory_model.json", "memory_model_code.py"} <= set(files)
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".bin"))]
    # scores are those of the reviews after those it has learned from
    scores = {metric.key: metric for metric in model.metrics}
    table = pd.read_parquet(folder / "out" / "0_fsrs6" / "predictions.parquet")
    table = table[(table.user == 1) & (table.fold == 4)]
    log_loss = sklearn.metrics.log_loss(table.recalled, table.p.astype(float))
    assert scores["model/log_loss"].value == pytest.approx(log_loss, abs=1e-6)
    (dataset,) = runs["fsrs6"].inputs.dataset_inputs
    assert scores["model/auc"].dataset_digest == dataset.dataset.digest


@pytest.mark.slow
def test_a_logged_model_gives_the_curves_of_the_fit(kept):
    folder, client, runs = kept
    fits = pq.read_table(folder / "out" / "0_fsrs6" / "fits.parquet").to_pylist()
    (last,) = [fit for fit in fits if (fit["user"], fit["fold"]) == (1, 4)]
    question = Question(last["parameters"])
    model = client.get_logged_model(runs["fsrs6"].outputs.model_outputs[0].model_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow's own
        import mlflow.pyfunc

        loaded = mlflow.pyfunc.load_model(model.artifact_location)
    split = question.histories.to_dict(orient="split", index=False)  # as a server is sent it
    histories = pd.DataFrame(split["data"], columns=split["columns"])
    assert question.is_answered_by(loaded.predict(histories, params={"days": list(DAYS)}))


def curves():
    parameters = list(Fsrs6().defaults(whole_days=True))
    return CurvesOfCards({"options": OPTIONS, "parameters": parameters, "whole_days": True})


def test_a_model_built_from_parameters_is_that_of_the_fit_and_cards_keep_their_order():
    question = Question(list(Fsrs6().defaults(whole_days=True)))
    assert question.is_answered_by(curves()(question.histories, DAYS))
    columns = {"card": [7, 3, 7], "elapsed_days": [0.0, 0.0, 4.0], "rating": [3, 1, 3]}
    given = curves()(pd.DataFrame(columns), [1, 10, 100])
    assert given["card"].tolist() == [7, 7, 7, 3, 3, 3]
    for _, curve in given.groupby("card"):
        assert (np.diff(curve["recall"]) < 0).all()


def test_what_cannot_be_built_or_asked_is_refused(transcript):
    calls = {
        "asked": lambda columns, days: curves()(pd.DataFrame(columns), days),
        "built": lambda *of: rebuilt_model(*of, whole_days=True),
    }

    def told_by(what, *given):
        return refusal(lambda: calls[what](*map(json.loads, given)))

    transcript("learned_models", told_by)


@pytest.mark.slow
def test_scores_rank_algorithms_without_files_of_models(tmp_path):
    words = ["tracking.model=scores", "figures=false", "panel=quick", "data.users=2"]
    words += ["data.size_scale=0.05", "hydra.sweep.dir=out", "tracking.uri=sqlite:///m.db"]
    assert apart(tmp_path, "-m", "algo=avg,constant,moving_avg", *words).status == 0
    client, runs = runs_in(tmp_path / "m.db")
    runs.sort(key=lambda run: run.data.metrics["test/log_loss"])
    by_loss = [{"field_name": "metrics.model/log_loss", "ascending": True}]
    ranked = client.search_logged_models([runs[0].info.experiment_id], order_by=by_loss)
    assert [model.source_run_id for model in ranked] == [run.info.run_id for run in runs]
    (digest,) = {score.dataset_digest for model in ranked for score in model.metrics}
    assert digest == runs[0].inputs.dataset_inputs[0].dataset.digest
    assert all(client.list_logged_model_artifacts(model.model_id) == [] for model in ranked)


JOBS = {"avg": "out/0_avg", "moving_avg": "out/1_moving_avg"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with two runs, what was said of them, and what the store has by their labels."""
    folder = tmp_path_factory.mktemp("tracked")
    words = ["-m", "algo=avg,moving_avg", *SMALL, "figures=false", "hydra.sweep.dir=out"]
    out = io.StringIO()  # capsys belongs to single tests
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        assert run_here([*words, "notes=what I tried", "+tags.who=me"]) == 0
    return folder, out.getvalue(), {run.data.tags["label"]: run for run in runs_in(folder)[1]}


@pytest.mark.slow
def test_every_job_is_a_finished_run_that_the_view_shows_and_the_later_is_compared(study):
    folder, out, runs = study
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert not any("mlflow.parentRunId" in run.data.tags for run in runs.values())
    assert all(run.info.run_name == f"{label} on synthetic" for label, run in runs.items())
    for label, place in JOBS.items():
        kept, summary = runs[label].data, summary_of(folder / place)
        counts = (summary["users"], summary["reviews"])
        assert (kept.metrics["users/n"], kept.metrics["users/reviews"]) == counts
        mean = summary["metrics"]["log_loss"]["mean_users"]
        assert kept.metrics["test/log_loss"] == pytest.approx(mean, abs=6e-5)
        assert kept.tags["rows_fingerprint"] == summary["rows_fingerprint"]
        assert {"protocol": "srs_benchmark", "who": "me"}.items() <= kept.tags.items()
        assert "what I tried" in kept.tags["mlflow.note.content"]
    first, later = (runs[label].data for label in JOBS)
    assert "vs_avg/log_loss_percent" in later.metrics
    assert later.tags["baseline"] == "avg"
    assert later.tags["baseline_config_hash"] == first.tags["config_hash"]
    assert not [name for name in first.metrics if name.startswith("vs_")]
    logged = {"params": later.params, "tags": later.tags, "metrics": later.metrics}
    for column in view.COLUMNS:
        kind, _, name = column.partition(".")
        assert kind == "attributes" or name.strip("`") in logged[kind], column
    assert set(view.BARS) <= set(later.metrics)
    end = out[out.index("to best") :]
    command = f"ui --workers 1 --backend-store-uri sqlite:///{folder / 'mlflow.db'}"
    assert (out.count(command), command in end) == (1, True)
    assert "compareRunsMode=CHART" in end


@pytest.mark.slow
def test_the_store_has_the_figures_and_the_files_of_the_output_folder(here, tmp_path):
    store = f"tracking.uri=sqlite:///{here.folder / 'mlflow.db'}"
    done = here("algo=hlr", *SMALL, store, "hydra.run.dir=out")
    client, (run,) = runs_in(here.folder)
    assert run.info.run_id in done.out
    figures = {"calibration", "roc", "users", "forgetting", *view.FIGURES}
    kept = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert {f"{name}.svg" for name in figures} <= kept
    for name in ("summary.json", "scores.parquet", "predictions.parquet", "fits.parquet"):
        file = client.download_artifacts(run.info.run_id, f"results/{name}", str(tmp_path))
        assert Path(file).read_bytes() == (here.folder / "out" / name).read_bytes()


@pytest.mark.slow
def test_a_failed_job_is_a_failed_run_that_can_be_found(here):
    (here.folder / "log.csv").write_text("card,rating,time\n1,9,1614600000\n", encoding="utf-8")
    store = f"tracking.uri=sqlite:///{here.folder / 'mlflow.db'}"
    done = here("algo=avg", "data=csv", "data.path=log.csv", store, "hydra.run.dir=out")
    assert done.status == 1
    _, (run,) = runs_in(here.folder)
    assert (run.data.metrics["users/failed"], run.info.status) == (1, "FAILED")
