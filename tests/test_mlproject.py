"""`mlflow run`: the entry points of MLproject join the run that MLflow has begun."""

import json
import os
import shlex
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from commands import process

ROOT = Path(__file__).parents[1]
SMALL = "data.users=2 data.size_scale=0.02 figures=false panel=quick curves_per_user=0"


# MLflow has pyenv build the newest Python 3.11; this one gives what there is.
PYENV = """#!/bin/sh
case "$1 $2" in
  root*) echo {root} ;;
  "install --list") echo 3.11.99 ;;
  install*)
    mkdir -p {root}/versions/3.11.99/bin
    ln -s {python} {root}/versions/3.11.99/bin/python
    ;;
esac
"""


def mlflow_run(folder, *words, manager="local", programs=Path(sys.executable).parent, **env):
    """Start `mlflow run` and return the runs it has made."""
    store = f"sqlite:///{folder / 'store.db'}"
    env |= {"MLFLOW_TRACKING_URI": store, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = process(
        [sys.executable, "-m", "mlflow", "run", str(ROOT), "--env-manager", manager, *words],
        cwd=folder,
        env={**os.environ, **env, "MLFLOW_ENV_ROOT": str(folder / "environments")},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    from mlflow import MlflowClient

    client = MlflowClient(store)
    return list(client.search_runs([e.experiment_id for e in client.search_experiments()]))


def run_entry(folder, entry, **given):
    """Run the command line of an entry point as MLflow does, which quotes every value."""
    described = yaml.safe_load((ROOT / "MLproject").read_text(encoding="utf-8"))
    point = described["entry_points"][entry]
    defaults = {name: of.get("default") for name, of in point["parameters"].items()}
    values = {name: shlex.quote(str(value)) for name, value in {**defaults, **given}.items()}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return process(
        ["bash", "-c", point["command"].format(**values)],
        cwd=folder,
        env={**os.environ, "PATH": programs},
    )


@pytest.mark.slow
def test_arguments_are_separated_and_quoted_as_on_the_command_line(tmp_path):
    (tmp_path / "a file").touch()  # what a pattern would find
    (tmp_path / "my runs").mkdir()
    overrides = "'notes=my cards, *' \"hydra.run.dir=a b\" --cfg hydra"
    done = run_entry(tmp_path, "main", overrides=overrides)
    assert done.returncode == 0, done.stderr
    expected = {"    - algo=fsrs6", "    - notes='my cards, *'", "    dir: a b"}
    assert expected <= {*done.stdout.splitlines()}
    wrong = {"overrides": "notes='a b' 'nots=a *'"}
    for entry, given, told in (
        ("sweep", {"algos": "avg,lsmt", **wrong}, ["algo=lsmt: ", "nots=a *: "]),
        ("search", {"algo": "avg,lsmt", **wrong}, ["algo=lsmt: ", "nots=a *: "]),
        (
            "compare",
            {"runs": "'my runs' 'no=such $HOME'", "options": "'metrics=*'"},
            ["no=such $HOME: ", "metrics=*: "],
        ),
        ("main", {"overrides": "'notes=my cards"}, ["algo=fsrs6 'notes=my cards: no closing"]),
    ):
        done = run_entry(tmp_path, entry, **given)
        assert done.returncode == 2
        assert [text for text in told if f"srs_eval: {text}" not in done.stderr] == []


@pytest.mark.slow
def test_mlflow_run_fills_the_run_it_has_begun(tmp_path):
    overrides = f"{SMALL} 'notes=with a space' hydra.run.dir={tmp_path / 'out'}"
    (run,) = mlflow_run(tmp_path, "-P", "algo=avg", "-P", f"overrides={overrides}")
    assert run.info.status == "FINISHED"
    assert run.data.metrics["test/log_loss"] > 0
    assert run.data.params["data.users"] == "2"
    assert "with a space" in run.data.tags["mlflow.note.content"]
    assert run.data.tags["mlflow.project.entryPoint"] == "main"
    assert (tmp_path / "out" / "summary.json").is_file()


@pytest.mark.nightly
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the project asks for Python 3.11")
def test_mlflow_run_makes_an_environment_of_its_own(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    pyenv = programs / "pyenv"
    python = Path(sys.base_prefix) / "bin" / "python3.11"
    pyenv.write_text(PYENV.format(root=tmp_path / "pyenv", python=python), encoding="utf-8")
    pyenv.chmod(0o755)
    words = ["-P", "algo=lstm", "-P", f"overrides={SMALL} hydra.run.dir={tmp_path / 'out'}"]
    # The folder of packages without its .pth files: it lends what srs_eval needs, not srs_eval.
    lent = {"PYTHONPATH": sysconfig.get_path("purelib")}
    mlflow_run(tmp_path, *words, manager="virtualenv", programs=programs, **lent)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["algo"] == "lstm"
    # What it installed is whole: it works outside the project, its options and sweepers too.
    (environment,) = (tmp_path / "environments").iterdir()
    words = ["-m", "srs_eval", "--cfg", "hydra", "algo=lstm", "sweep=optuna_lstm"]
    shown = process(
        [str(environment / "bin" / "python"), *words], cwd=tmp_path, env={**os.environ, **lent}
    )
    assert shown.returncode == 0, shown.stderr
    assert "n_trials: 30" in shown.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("entry", "words", "more", "jobs"),
    [
        ("sweep", "algos=avg,sm2", "", ["avg", "sm2"]),
        # whose first trial joins the run that was begun
        ("search", "algo=lstm", "hydra.sweeper.n_trials=2", ["0", "1", "search"]),
    ],
)
def test_jobs_of_a_sweep_are_runs(tmp_path, entry, words, more, jobs):
    overrides = f"overrides={SMALL} hydra.sweep.dir={tmp_path / 'out'} {more}".strip()
    runs = mlflow_run(tmp_path, "-e", entry, "-P", words, "-P", overrides)
    tags = [run.data.tags for run in runs]
    found = [tag.get("trial", tag.get("algo", "search")) for tag in tags]
    assert sorted(found) == jobs
    assert {run.info.status for run in runs} == {"FINISHED"}
