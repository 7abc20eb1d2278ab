"""Runs whose parts and MLflow artefacts are in an object store."""

from __future__ import annotations

import pytest
from commands import Here
from object_store import object_store
from same import assert_same

from srs_eval.place import Place
from srs_eval.results import load

RUN = (
    *("algo=avg", "data.users=2", "data.size_scale=0.02", "data.max_reviews=600"),
    *("panel=quick", "figures=false", "hydra.run.dir=out"),
)


@pytest.mark.slow
def test_large_results_and_artefacts_of_mlflow_stay_in_an_object_store(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*RUN, "parts=s3://bucket/parts", "parts_above=0")
    artefacts = "tracking.artifacts=s3://bucket/mlflow"
    assert here(*RUN, "tracking=none", "hydra.run.dir=one").status == 0
    with object_store(monkeypatch, "bucket"):
        assert here(*words, artefacts).status == 0
        logged = Place.of("s3://bucket/mlflow").files(recursive=True)
        names = {entry.place.name for entry in logged}
        assert {"scores.parquet", "summary.json", "metrics.json"} <= names
        one, out = (load(here.folder / name) for name in ("one", "out"))
        for found, expected in zip(out.predicted, one.predicted, strict=True):
            assert_same(found, expected)
        (here.folder / "out").rename(here.folder / "lost")
        for said in ("2 of 2 users were done before", "finished before"):
            again = here(*words, "tracking=none", "resume=true")
            assert (again.status, said in again.out) == (0, True)
        assert len(load(here.folder / "out").predicted.users) == 2
        assert "predictions" in Place.of("s3://bucket/parts").names()


@pytest.mark.slow
def test_a_bucket_that_cannot_be_used_is_told_before_a_user_is_evaluated(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srs_eval.experiment.job.evaluate_chunks", None)
    for bucket, failure, what in (
        ("nobody", "", "no such bucket"),
        ("bucket", "403 Access Denied", "permission is denied"),
    ):
        with object_store(monkeypatch, "bucket") as store:
            store.failing = lambda number, failure=failure: failure
            done = here(*RUN, "tracking=none", f"parts=s3://{bucket}/run")
        assert (done.status, "Traceback" in done.err) == (1, False)
        assert f"s3://{bucket}/run" in done.err
        assert what in done.err


def test_places_where_parts_cannot_be_are_refused(here: Here) -> None:
    for parts in ("hf://datasets/me/parts", ".", "ftp://host/parts"):
        assert here(*RUN, "tracking=none", f"parts={parts}").status == 2
        assert not (here.folder / "out" / "parts").exists()
