"""What options say in Hydra's own section is checked before Hydra acts on it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import rest_nightly
from commands import run_here as command
from hydra.errors import HydraException

from srs_eval.config.hydra_section import refused_before
from srs_eval.config.option_files import also_in
from srs_eval.config.settings import register_schema

QUICK = ["algo=avg", "data.users=1", "data.size_scale=0.02", "tracking=none", "figures=false"]
CALL = "{_target_: distutils.spawn.spawn, cmd: [touch, PWNED]}"
FOLDER = "srs_eval.commands.run.RememberFolder"
OVERLAYS = {
    "job: {env_set: {LD_PRELOAD: x.so}}": "hydra.job.env_set",
    "job: {env_copy: [HOME]}": "hydra.job.env_copy",
    "job: {env_copy: [NOT_SET_ANYWHERE]}": "NOT_SET_ANYWHERE",
    f"callbacks: {{x: {CALL}}}": "hydra.callbacks.x",
    "callbacks: {folder: {_target_: marking.Callback}}": "hydra.callbacks.folder",
    "callbacks: {x: {_target_: srs_eval.algorithms.baselines.Average}}": "hydra.callbacks.x",
    "callbacks: {x: 3}": "hydra.callbacks.x",
    "callbacks: '${tags}'": "hydra.callbacks",
    f"callbacks: {{x: {{_target_: {FOLDER}, a: {CALL}}}}}": "hydra.callbacks.x",
    f"sweeper: {{params: {{a: {CALL}}}}}": "hydra.sweeper.params.a",
    f"launcher: {{a: [{CALL}]}}": "hydra.launcher.a",
    f"launcher: {{a: '${{hydra.job.config.x}}'}}, job: {{config: {{x: {CALL}}}}}": (
        "hydra.launcher.a"
    ),
    "launcher: {a: '${hydra.nowhere}'}": "hydra.launcher",
    "launcher: {setup: [touch PWNED]}": "hydra.launcher.setup",
    "launcher: {partition: 'x\\ntouch PWNED'}": "hydra.launcher.partition",
    "launcher: {temp_folder: /elsewhere}": "hydra.launcher.temp_folder",
    "sweeper: {command: touch PWNED}": "hydra.sweeper.command",
    "sweeper: {params: {'+hydra.job.env_set.A': 'x,y'}}": "hydra.sweeper.params",
    "hydra_logging: {formatters: {x: {(): distutils.spawn.spawn, cmd: [touch, PWNED]}}}": (
        "hydra.hydra_logging"
    ),
    "job_logging: {handlers: {x: {class: distutils.spawn.spawn}}}": "hydra.job_logging",
    "job_logging: {filters: {x: {a: 'ext://antigravity.fly'}}}": "hydra.job_logging",
    "job_logging: {handlers: {x: {class: logging.FileHandler, filename: PWNED}}}": (
        "hydra.job_logging"
    ),
    "hydra_logging: {root: {level: 'ext://antigravity.fly'}}": "hydra.hydra_logging",
    "job_logging: '${tags}'": "hydra.job_logging",
    "job: {name: ../PWNED}": "hydra.job.name=../PWNED",
    "run: {dir: 's3://bucket/x'}": "hydra.run.dir=s3://bucket/x",
    "run: {dir: '${oc.decode:\"gs://bucket\"}'}": "hydra.run.dir=gs://bucket",
    "run: {dir: ' '}": "hydra.run.dir=",
    "run: {dir: /}": "hydra.run.dir=/",
    "run: {dir: /tmp/..}": "hydra.run.dir=/tmp/..",
    "sweep: {dir: 'abfss://c@a/x'}": "hydra.sweep.dir",
    "sweep: {subdir: 's3://x'}": "hydra.sweep.subdir",
    "output_subdir: 's3://x'": "hydra.output_subdir",
    "output_subdir: ../elsewhere": "hydra.output_subdir",
}
# Of a file that is named in the option of a group; what decides is what Hydra has composed.
HANDLERS = """
version: 1
disable_existing_loggers: false
formatters: {simple: {format: '[%(asctime)s][%(name)s][%(levelname)s] - %(message)s'}}
handlers:
  console: {class: logging.StreamHandler, formatter: simple, stream: 'ext://sys.stdout'}
  file:
    class: logging.FileHandler
    formatter: simple
    filename: FILE
root: {level: INFO, handlers: [console, file]}
"""
OWN_FILE = "${hydra.runtime.output_dir}/${hydra.job.name}.log"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a folder `c` of untrusted options."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c" / "experiment").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def _log_files_are_closed() -> Iterator[None]:
    """Close what Hydra logs to, as the end of a process does."""
    kept = logging.root.handlers[:]
    yield
    for handler in [one for one in logging.root.handlers if one not in kept]:
        logging.root.removeHandler(handler)
        handler.close()


def overlay(place: Path, name: str, section: str) -> None:
    text = f"# @package _global_\nhydra: {{{section}}}\n"
    (place / "c" / "experiment" / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_what_an_overlay_makes_hydra_do_is_refused(place: Path) -> None:
    register_schema()
    for section, key in OVERLAYS.items():
        overlay(place, "x", section)
        with also_in([place / "c"]):
            try:
                said = " ".join(refused_before(["experiment=x"], []))
            except HydraException as error:  # no key of a launcher
                said = str(error)
        assert key in said, section
    assert [path.name for path in place.iterdir()] == ["c"]


@pytest.mark.parametrize("section", rest_nightly([*OVERLAYS][::4]))
def test_a_command_with_such_an_overlay_does_nothing(
    place: Path, section: str, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay(place, "x", section)
    assert command([*QUICK, "--config-dir", "c", "experiment=x"]) == 2
    said = capsys.readouterr().err
    assert OVERLAYS[section] in said
    assert "Traceback" not in said
    assert [path.name for path in place.iterdir()] == ["c"]


@pytest.mark.usefixtures("_log_files_are_closed")
@pytest.mark.parametrize(
    ("file", "kind", "status"),
    [("PWNED", "job", 2), ("PWNED", "hydra", 2), (OWN_FILE, "job", 0)],
)
def test_an_option_of_logging_writes_no_file_but_that_of_hydra(
    place: Path, file: str, kind: str, status: int
) -> None:
    folder = place / "c" / "hydra" / f"{kind}_logging"
    folder.mkdir(parents=True)
    (folder / "x.yaml").write_text(HANDLERS.replace("FILE", file), encoding="utf-8")
    words = [*QUICK, "panel=quick", "--config-dir", "c", "hydra.run.dir=out"]
    assert command([*words, f"hydra/{kind}_logging=x"]) == status
    if kind == "hydra":  # which help would open
        assert command(["--config-dir", "c", "hydra/hydra_logging=x", "--hydra-help"]) == 2
    assert not (place / "PWNED").exists()
    assert (place / "out" / "srs_eval.log").exists() == (status == 0)


def test_a_reference_to_what_would_be_called_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# @package _global_\ndefaults: [override /hydra/sweeper: srs_eval_optuna]\n"
    text += f"hydra: {{sweeper: {{trial: '${{study}}'}}}}\nstudy: {CALL}\n"
    (place / "c" / "experiment" / "x.yaml").write_text(text, encoding="utf-8")
    assert command(["-m", *QUICK, "--config-dir", "c", "experiment=x"]) == 2
    assert "hydra.sweeper.trial" in capsys.readouterr().err
    assert not (place / "PWNED").exists()


def test_what_a_launcher_runs_is_typed(place: Path) -> None:
    reason = "hydra-submitit-launcher is needed"
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason=reason)
    overlay(place, "x", "launcher: {partition: long, timeout_min: 5, setup: [module load x]}")
    words = ["experiment=x", "hydra/launcher=submitit_slurm"]
    register_schema()
    with also_in([place / "c"]):
        (problem,) = refused_before(words, [])
        assert problem.startswith("hydra.launcher.setup:")
        assert refused_before([*words, "hydra.launcher.setup=[module load y]"], []) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    rest_nightly(["sweep=s", "experiment=x,y", "experiment=glob(*)", "experiment=choice(x,y)"]),
)
def test_what_a_sweep_chooses_is_checked_before_the_first_job(
    place: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay(place, "x", "job_logging: {formatters: {x: {(): distutils.spawn.spawn}}}")
    overlay(place, "y", "job: {chdir: false}")
    (place / "c" / "sweep").mkdir()
    hidden = "# @package _global_\nhydra: {sweeper: {params: {experiment: 'x,null'}}}\n"
    (place / "c" / "sweep" / "s.yaml").write_text(hidden, encoding="utf-8")
    assert command(["-m", *QUICK, "--config-dir", "c", how, "hydra.sweep.dir=out"]) == 2
    assert "hydra.job_logging" in capsys.readouterr().err
    assert not (place / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["hydra.run.dir=out", "+hydra.callbacks.again={_target_: " + FOLDER + "}"],
        ["hydra.run.dir=out", "hydra.verbose=true"],
        ["hydra.run.dir=out", "hydra/job_logging=stdout"],
    ],
)
def test_the_rest_of_the_section_works_as_before(place: Path, words: list[str]) -> None:
    assert command([*QUICK, "panel=quick", *words]) == 0
    assert (place / "out" / "summary.json").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["--experimental-rerun", "x.pickle"],
        ["--experimental-rer=x.pickle"],
        ["--config-path", "elsewhere"],
        ["-cn", "other"],
    ],
)
def test_flags_that_run_other_things_are_refused(
    place: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "x.pickle").write_bytes(b"cbuiltins\nopen\n(VPWNED\nVw\ntR.")
    assert command(words) == 2
    assert "--" in capsys.readouterr().err
    assert not (place / "PWNED").exists()
