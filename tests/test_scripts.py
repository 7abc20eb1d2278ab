"""./run, ./check and `mlflow run` pass their arguments on, and say what is missing."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from cases import ROOT
from commands import process
from sessions import runs_in

RECORDER = """#!/bin/sh
printf '%s\\n' "$(basename "$0") $*" >>"$RECORD"
[ "$(basename "$0")" != uv ] || exit "${UV_STATUS-1}"
[ "$2" != pip ] || exit "${PIP_STATUS-0}"
"""


def write_programs(folder, **texts):
    """Write programs for the PATH."""
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)


@pytest.fixture
def started(tmp_path):
    """Run a script of a checkout whose programs only record how they are called.

    Returned are the status, what is said, and the calls.
    """
    checkout, venv, record = tmp_path / "a checkout", tmp_path / "venv", tmp_path / "record"
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    for name in ("run", "check", "pyproject.toml"):
        shutil.copy2(ROOT / name, checkout / name)
    (checkout / "constraints.txt").touch()
    write_programs(venv / "bin", **dict.fromkeys(("python", "typos", "uv"), RECORDER))

    def run(*words, pins=None, **env):
        record.write_text("", encoding="utf-8")
        if pins:
            (checkout / "constraints.txt").write_text(pins, encoding="utf-8")
        given = {"RECORD": str(record), "SRS_EVAL_VENV": str(venv), "PYTHON": sys.executable, **env}
        given["PATH"] = f"{venv / 'bin'}:{os.environ['PATH']}"
        done = process([f"./{words[0]}", *words[1:]], cwd=checkout, env={**os.environ, **given})
        return done.returncode, done.stderr, record.read_text(encoding="utf-8").splitlines()

    return run


def test_run_sets_up_once_for_the_same_pins_and_passes_its_arguments_on(started, tmp_path):
    _, told, calls = started("run")
    assert "Setting up" in told
    checkout = tmp_path / "a checkout"
    pins = f"--constraint {checkout}/constraints.txt"
    for call in calls[:2]:  # uv, which knows of no packages here, and pip
        assert all(text in call for text in ("pip install", pins, f"--editable {checkout}[sweep]"))
    assert calls[-1] == "python -m srs_eval -m experiment=quick_start"
    _, told, calls = started("run", "algo=avg", "data.path=my own log.csv", "--help")
    assert (told, calls) == ("", ["python -m srs_eval algo=avg data.path=my own log.csv --help"])
    status, _, calls = started("run", pins="numpy==2.4.0\n", PIP_STATUS="1")
    assert (status, any("experiment=" in call for call in calls)) == (1, False)
    _, _, calls = started("run")  # what failed is not taken for done
    assert "pip install" in calls[0]


def test_check_checks_everything_and_arguments_are_for_pytest_alone(started):
    started("check")
    _, told, calls = started("run", "--help")  # what is set up is enough for run
    assert (told, calls) == ("", ["python -m srs_eval --help"])
    _, _, calls = started("check")
    tools = [re.sub("^python -m ", "", call).split()[0] for call in calls]
    assert tools == ["ruff", "ruff", "mypy", "typos", "pytest"]
    assert started("check", "style")[2] == calls[:4]
    _, _, calls = started("check", "-m", "slow", "tests/metrics")
    assert calls == ["python -m pytest -m slow tests/metrics"]


PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
SMALL = "data.users=2 data.size_scale=0.02 figures=false panel=quick curves_per_user=0"


def run_entry(folder, entry, **given):
    """Run the command line of an entry point as MLflow does, which quotes every value."""
    described = yaml.safe_load((ROOT / "MLproject").read_text(encoding="utf-8"))
    point = described["entry_points"][entry]
    defaults = {name: of.get("default") for name, of in point["parameters"].items()}
    values = {name: shlex.quote(str(value)) for name, value in {**defaults, **given}.items()}
    command = ["bash", "-c", point["command"].format(**values)]
    return process(command, cwd=folder, env={**os.environ, "PATH": PROGRAMS})


@pytest.mark.slow
def test_arguments_are_separated_and_quoted_as_on_the_command_line(tmp_path):
    (tmp_path / "a file").touch()  # what a pattern would find
    overrides = "'notes=my cards *' \"hydra.run.dir=a b\" --cfg hydra"
    done = run_entry(tmp_path, "main", overrides=overrides)
    assert done.returncode == 0, done.stderr
    expected = {"    - algo=fsrs6", "    - notes=my cards *", "    dir: a b"}
    assert expected <= {*done.stdout.splitlines()}
    wrong = {"overrides": "notes='a b' 'nots=a *'"}
    for entry, given, told in (
        ("sweep", {"algos": "avg", **wrong}, "nots=a"),
        ("search", {"algo": "hlr", "sweep": "optuna_fsrs", **wrong}, "nots=a"),
        ("compare", {"runs": "'my runs' 'no such $HOME'"}, "no such $HOME"),
        ("main", {"overrides": "'notes=my cards"}, "algo=fsrs6 'notes=my cards: no closing"),
    ):
        done = run_entry(tmp_path, entry, **given)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
        assert told in done.stderr


@pytest.mark.slow
def test_the_scripts_for_slurm_run_an_array_and_add_it_up(tmp_path):
    sbatch = (ROOT / "tests" / "golden" / "sbatch.sh").read_text("utf-8")
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    write_programs(tmp_path / "bin", sbatch=sbatch, python=python)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    words = ["algo=avg", "tracking=none", *SMALL.split(), "data.users=3"]
    script = ROOT / "examples" / "slurm" / "run.sh"
    array = process(["sh", script, "2", "out", *words], cwd=tmp_path, env=environment)
    assert array.returncode == 0, array.stderr
    one = process([sys.executable, "-m", "srs_eval", *words, "hydra.run.dir=one"], cwd=tmp_path)
    assert one.returncode == 0, one.stderr
    for name in ("predictions.parquet", "scores.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


@pytest.mark.slow
def test_mlflow_run_fills_the_run_it_has_begun(tmp_path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    overrides = f"{SMALL} 'notes=with a space' hydra.run.dir={tmp_path / 'out'}"
    words = ["--env-manager", "local", "-P", "algo=avg", "-P", f"overrides={overrides}"]
    done = process(
        [sys.executable, "-m", "mlflow", "run", str(ROOT), *words],
        cwd=tmp_path,
        env={**os.environ, "MLFLOW_TRACKING_URI": store, "PATH": PROGRAMS},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (run,) = runs_in(store)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["test/log_loss"] > 0
    assert run.data.params["data.users"] == "2"
    assert "with a space" in run.data.tags["mlflow.note.content"]
    assert run.data.tags["mlflow.project.entryPoint"] == "main"
    assert (tmp_path / "out" / "summary.json").is_file()
