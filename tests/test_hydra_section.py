"""What options say in Hydra's own section is checked before Hydra acts on it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Here
from commands import run_here as command
from hydra.errors import HydraException

from srs_eval.config.hydra_section import refused_before
from srs_eval.config.option_files import also_in
from srs_eval.config.settings import register_schema

QUICK = ["algo=avg", "data.users=1", "data.size_scale=0.02", "tracking=none", "figures=false"]
CALL = "{_target_: distutils.spawn.spawn, cmd: [touch, PWNED]}"
PLUG_INS = ("hydra/launcher=submitit_slurm", "hydra/sweeper=srs_eval_optuna")
LAUNCHER = "hydra_plugins.hydra_submitit_launcher"
FOLDER = "srs_eval.commands.run.RememberFolder"
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


def test_what_an_overlay_makes_hydra_do_is_refused(
    place: Path, transcript: Callable[[str, Callable[..., str]], None]
) -> None:
    pytest.importorskip(LAUNCHER, reason=f"{LAUNCHER} is needed")
    register_schema()

    def told(*words: str) -> str:
        chosen = [word for word in PLUG_INS if words[0].rstrip(":") in word]
        overlay(place, "x", " ".join(words))
        with also_in([place / "c"]):
            try:
                found = refused_before(["experiment=x", *chosen], [])
            except HydraException as error:
                found = [str(error).partition("\n")[0]]
        assert found
        return "\n".join([*found, ""])

    transcript("refused_overlays", told)
    assert [path.name for path in place.iterdir()] == ["c"]


def test_a_command_with_such_an_overlay_does_nothing(place: Path, here: Here) -> None:
    overlay(place, "x", f"callbacks: {{x: {CALL}}}")
    done = here(*QUICK, "--config-dir", "c", "experiment=x")
    assert (done.status, "hydra.callbacks.x" in done.err) == (2, True)
    text = "# @package _global_\ndefaults: [override /hydra/sweeper: srs_eval_optuna]\n"
    text += f"hydra: {{sweeper: {{trial: '${{study}}'}}}}\nstudy: {CALL}\n"
    (place / "c" / "experiment" / "x.yaml").write_text(text, encoding="utf-8")
    done = here("-m", *QUICK, "--config-dir", "c", "experiment=x")
    assert (done.status, "hydra.sweeper.trial" in done.err) == (2, True)
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


def test_what_a_launcher_runs_is_typed(place: Path) -> None:
    pytest.importorskip(LAUNCHER, reason=f"{LAUNCHER} is needed")
    overlay(place, "x", "launcher: {partition: long, timeout_min: 5, setup: [module load x]}")
    words = ["experiment=x", "hydra/launcher=submitit_slurm"]
    register_schema()
    with also_in([place / "c"]):
        (problem,) = refused_before(words, [])
        assert problem.startswith("hydra.launcher.setup:")
        assert refused_before([*words, "hydra.launcher.setup=[module load y]"], []) == []


@pytest.mark.slow
def test_what_a_sweep_chooses_is_checked_before_the_first_job(place: Path, here: Here) -> None:
    overlay(place, "x", "job_logging: {formatters: {x: {(): distutils.spawn.spawn}}}")
    overlay(place, "y", "job: {chdir: false}")
    (place / "c" / "sweep").mkdir()
    hidden = "# @package _global_\nhydra: {sweeper: {params: {experiment: 'x,null'}}}\n"
    (place / "c" / "sweep" / "s.yaml").write_text(hidden, encoding="utf-8")
    for how in ("sweep=s", "experiment=x,y", "experiment=glob(*)", "experiment=choice(x,y)"):
        done = here("-m", *QUICK, "--config-dir", "c", how, "hydra.sweep.dir=out")
        assert (done.status, "hydra.job_logging" in done.err) == (2, True), how
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


def test_flags_that_run_other_things_are_refused(place: Path, here: Here) -> None:
    (place / "x.pickle").write_bytes(b"cbuiltins\nopen\n(VPWNED\nVw\ntR.")
    flags = "--experimental-rerun x.pickle;--experimental-rer=x.pickle;--config-path c;-cn other"
    for words in flags.split(";"):
        done = here(*words.split())
        assert (done.status, "--" in done.err) == (2, True), words
    assert not (place / "PWNED").exists()
