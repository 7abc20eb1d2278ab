"""What options say in Hydra's own section is checked before Hydra acts on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import rest_slow
from commands import run_here as command

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
    f"callbacks: {{x: {{_target_: {FOLDER}, a: {CALL}}}}}": "hydra.callbacks.x",
    f"sweeper: {{params: {{a: {CALL}}}}}": "hydra.sweeper.params.a",
    f"launcher: {{a: [{CALL}]}}": "hydra.launcher.a",
    "hydra_logging: {formatters: {x: {(): distutils.spawn.spawn, cmd: [touch, PWNED]}}}": (
        "hydra.hydra_logging"
    ),
    "job_logging: {handlers: {x: {class: distutils.spawn.spawn}}}": "hydra.job_logging",
    "job_logging: {filters: {x: {a: 'ext://antigravity.fly'}}}": "hydra.job_logging",
    "run: {dir: 's3://bucket/x'}": "hydra.run.dir=s3://bucket/x",
    "run: {dir: '${oc.decode:\"gs://bucket\"}'}": "hydra.run.dir=gs://bucket",
    "run: {dir: ' '}": "hydra.run.dir=",
    "run: {dir: /}": "hydra.run.dir=/",
    "run: {dir: /tmp/..}": "hydra.run.dir=/tmp/..",
    "sweep: {dir: 'abfss://c@a/x'}": "hydra.sweep.dir",
    "sweep: {subdir: 's3://x'}": "hydra.sweep.subdir",
    "output_subdir: 's3://x'": "hydra.output_subdir",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a folder `c` of untrusted options."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c" / "experiment").mkdir(parents=True)
    return tmp_path


def overlay(place: Path, name: str, section: str) -> None:
    text = f"# @package _global_\nhydra: {{{section}}}\n"
    (place / "c" / "experiment" / f"{name}.yaml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("section", rest_slow(OVERLAYS, 4))
def test_what_an_overlay_makes_hydra_do_is_refused(
    place: Path, section: str, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay(place, "x", section)
    assert command([*QUICK, "--config-dir", "c", "experiment=x"]) == 2
    said = capsys.readouterr().err
    assert OVERLAYS[section] in said
    assert "Traceback" not in said
    assert [path.name for path in place.iterdir()] == ["c"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", rest_slow(["experiment=x,y", "experiment=glob(*)", "experiment=choice(x,y)"])
)
def test_what_a_sweep_chooses_is_checked_before_the_first_job(
    place: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay(place, "x", "job_logging: {formatters: {x: {(): distutils.spawn.spawn}}}")
    overlay(place, "y", "job: {chdir: false}")
    assert command(["-m", *QUICK, "--config-dir", "c", how, "hydra.sweep.dir=out"]) == 2
    assert "hydra.job_logging.formatters.x.()" in capsys.readouterr().err
    assert not (place / "out").exists()


@pytest.mark.slow
def test_a_sweep_that_is_hidden_in_an_overlay_is_checked_too(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "c" / "sweep").mkdir()
    overlay(place, "x", "job_logging: {formatters: {x: {(): distutils.spawn.spawn}}}")
    text = "# @package _global_\nhydra: {sweeper: {params: {experiment: 'x,null'}}}\n"
    (place / "c" / "sweep" / "s.yaml").write_text(text, encoding="utf-8")
    assert command(["-m", *QUICK, "--config-dir", "c", "sweep=s", "hydra.sweep.dir=out"]) == 2
    assert "hydra.job_logging.formatters.x.()" in capsys.readouterr().err
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
