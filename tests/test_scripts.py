"""`mlflow run` and the scripts for Slurm pass their arguments on."""

import os
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from cases import ROOT
from commands import process, write
from sessions import runs_in

SMALL = "data.users=2 data.size_scale=0.02 figures=false panel=quick curves_per_user=0"


@pytest.mark.parametrize(
    ("entry", "given", "expected"),
    [
        (
            "main",
            {"overrides": "'notes=my cards *' seed=$HOME"},
            ["algo=fsrs6", "notes=my cards *", "seed=$HOME"],
        ),
        ("sweep", {"algos": "avg,hlr"}, ["-m", "algo=avg,hlr"]),
        ("search", {"algo": "hlr", "sweep": "optuna"}, ["-m", "algo=hlr", "sweep=optuna"]),
        (
            "compare",
            {"runs": "'my runs' b", "options": "metric=auc"},
            ["my runs", "b", "metric=auc"],
        ),
    ],
)
def test_an_entry_point_passes_words_on_as_they_were_typed(
    tmp_path, monkeypatch, entry, given, expected
):
    """A shell takes the command apart, in which MLflow has quoted every value."""
    (tmp_path / "a file").touch()  # what a pattern would find
    point = yaml.safe_load((ROOT / "MLproject").read_text("utf-8"))["entry_points"][entry]
    defaults = {name: of.get("default") for name, of in point["parameters"].items()}
    values = {name: shlex.quote(str(value)) for name, value in {**defaults, **given}.items()}
    shown = f"python() {{ printf '%s\\n' \"$@\"; }}; {point['command'].format(**values)}"
    flag, module, *typed = process(["bash", "-c", shown], cwd=tmp_path).stdout.splitlines()
    run_module, began = runpy.run_module, []
    monkeypatch.setattr(runpy, "run_module", lambda name, **_: began.extend([name, *sys.argv[1:]]))
    monkeypatch.setattr(sys, "argv", [module, *typed])
    run_module(module, run_name="__main__")
    name = "srs_eval.compare" if entry == "compare" else "srs_eval"
    assert (flag, began) == ("-m", [name, *expected])
    monkeypatch.setattr(sys, "argv", [module, "srs_eval", "'notes=my cards"])
    with pytest.raises(SystemExit, match="no closing quotation"):
        run_module(module, run_name="__main__")


@pytest.mark.nightly
def test_the_scripts_for_slurm_run_an_array_and_add_it_up(tmp_path):
    sbatch = (ROOT / "tests" / "golden" / "sbatch.sh").read_text("utf-8")
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    write(tmp_path / "bin", {"sbatch": sbatch, "python": python})
    for program in (tmp_path / "bin").iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    words = ["algo=avg", "tracking=none", *SMALL.split(), "data.users=3"]
    script = ROOT / "examples" / "slurm" / "run.sh"
    array = process(["sh", script, "2", "out", *words], cwd=tmp_path, env=environment)
    assert array.returncode == 0, array.stderr
    one = process([sys.executable, "-m", "srs_eval", *words, "hydra.run.dir=one"], cwd=tmp_path)
    assert one.returncode == 0, one.stderr
    for name in ("predictions.parquet", "scores.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


@pytest.mark.nightly
def test_mlflow_run_fills_the_run_it_has_begun(tmp_path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    overrides = f"{SMALL} 'notes=with a space' hydra.run.dir={tmp_path / 'out'}"
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["--env-manager", "local", "-P", "algo=avg", "-P", f"overrides={overrides}"]
    done = process(
        [sys.executable, "-m", "mlflow", "run", str(ROOT), *words],
        cwd=tmp_path,
        env={**os.environ, "MLFLOW_TRACKING_URI": store, "PATH": programs},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (run,) = runs_in(store)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["test/log_loss"] > 0
    assert run.data.params["data.users"] == "2"
    assert "with a space" in run.data.tags["mlflow.note.content"]
    assert run.data.tags["mlflow.project.entryPoint"] == "main"
    assert (tmp_path / "out" / "summary.json").is_file()
