"""./run, ./check, `mlflow run`, Slurm and the callback pass on what they are given."""

import os
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from cases import ROOT
from commands import QUIET, SMALL, process, write
from sessions import runs_in, store_of


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


def programs(folder, **texts):
    """Write programs, and return a PATH that begins with them."""
    write(folder, texts)
    for program in folder.iterdir():
        program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_run_and_check_set_up_once_for_the_same_pins(tmp_path):
    """The interpreter of this checkout only writes down how it is called."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("run", "check", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, tmp_path)
    python = '#!/bin/sh\necho "$*" >>calls\n[ "$2" != pip ] || exit $PIP_STATUS\n'
    path = programs(tmp_path / "venv" / "bin", python=python, uv="#!/bin/sh\nexit 1\n")
    env = {**os.environ, "SRS_EVAL_VENV": str(tmp_path / "venv"), "PATH": path}

    def calls(*words, status=0):
        (tmp_path / "calls").write_text("")
        given = {**env, "PIP_STATUS": str(status)}
        assert process(words, cwd=tmp_path, env=given).returncode == status
        return (tmp_path / "calls").read_text().splitlines()

    assert len(calls("./run", status=1)) == 1  # and is not taken for done
    assert calls("./run")[1:] == ["-m srs_eval -m experiment=quick_start"]
    assert calls("./run", "algo=avg") == ["-m srs_eval algo=avg"]
    (tmp_path / "constraints.txt").write_text("numpy==2.4.0\n")
    assert len(calls("./run")) == 2
    assert calls("./check", "-m", "slow")[1:] == ["-m pytest -m slow"]  # it needs more


@pytest.mark.nightly
def test_the_callback_makes_jobs_of_any_hydra_application_runs(tmp_path):
    words = ["-m", "rate=0.1,-1", "hydra.sweep.dir=sweep", "hydra.job.chdir=true"]
    app = ROOT / "examples" / "hydra_callback" / "app.py"
    assert process([sys.executable, str(app), *words], cwd=tmp_path).returncode == 1
    assert [*tmp_path.rglob("*.db")] == [tmp_path / "mlflow.db"]
    by_rate = {run.data.params["rate"]: run for run in runs_in(store_of(tmp_path))}
    assert [by_rate[rate].info.status for rate in ("0.1", "-1")] == ["FINISHED", "FAILED"]
    assert by_rate["0.1"].data.metrics["x"] == pytest.approx(2 + 8 * 0.8**5)


@pytest.mark.nightly
def test_the_scripts_for_slurm_run_an_array_and_add_it_up(tmp_path):
    sbatch = (ROOT / "tests" / "golden" / "sbatch.sh").read_text("utf-8")
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    environment = {**os.environ, "PATH": programs(tmp_path / "bin", sbatch=sbatch, python=python)}
    words = ["algo=avg", *SMALL, *QUIET, "data.users=3"]
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
    overrides = (
        f"{' '.join(SMALL)} figures=false 'notes=with a space' hydra.run.dir={tmp_path / 'out'}"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["--env-manager", "local", "-P", "algo=avg", "-P", f"overrides={overrides}"]
    done = process(
        [sys.executable, "-m", "mlflow", "run", str(ROOT), *words],
        cwd=tmp_path,
        env={**os.environ, "MLFLOW_TRACKING_URI": store, "PATH": path},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (run,) = runs_in(store)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["test/log_loss"] > 0
    assert "with a space" in run.data.tags["mlflow.note.content"]
    assert run.data.tags["mlflow.project.entryPoint"] == "main"
    assert (tmp_path / "out" / "summary.json").is_file()
