"""The command line: arguments to a configuration, a configuration to jobs."""

from __future__ import annotations

import difflib
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, read_write
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from srs_eval.compute import stopping
from srs_eval.compute.shard import ALL, SHARDS, Shard
from srs_eval.config import option_files, settings
from srs_eval.config.hydra_section import refused_before, section_problems
from srs_eval.errors import ConfigError, FolderInUseError
from srs_eval.text.console import complain, facts, say
from srs_eval.tuning.progress import running_trial

if TYPE_CHECKING:
    from srs_eval.experiment.attempt import Work


# Hydra's own sweeper.
_GRID = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
# Words that a study understands.
_OF_A_STUDY = ("experiment", "study", "tracking")


@dataclass
class _Command:
    """The folder and the state of the current command, which Hydra tells a callback only."""

    folder: Path | None = None
    is_sweep: bool = False
    report: bool = False
    printed: set[str] = field(default_factory=set)
    claims: ExitStack = field(default_factory=ExitStack)
    status: int = 0
    reports_its_end: bool = False


_command = _Command()


def started() -> Path | None:
    """Return the folder of the current command, if it has one yet."""
    return _command.folder


class RememberFolder(Callback):
    """Note where the jobs of a command put their results."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Claim the folder of a single job before anything is written there."""
        HydraConfig.instance().set_config(config)  # which the default folder is named after
        if config.shard is not None and config.shard != ALL:
            _give_shard_a_folder(config)
        _claim(config, "run")

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note the folder of a single job."""
        if not _command.is_sweep:
            _command.folder = Path(config.hydra.runtime.output_dir).resolve()

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Claim and note the folder that holds the folders of all jobs."""
        if config.shard is not None:
            _refuse(f"shard={config.shard}: a single run is shared, without -m")
        _claim(config, "sweep")
        _command.folder = Path(config.hydra.sweep.dir).resolve()
        _command.is_sweep, _command.report = True, bool(config.report)
        # A search goes on with its trials; any other sweep says anew how each job ends.
        if config.hydra.sweeper["_target_"] == _GRID:
            from srs_eval.experiment.jobs import forget_outcomes  # heavy: not for --help

            forget_outcomes(_command.folder)


def _give_shard_a_folder(config: DictConfig) -> None:
    """Let a shard put its own files in a folder of its own, in that of the run."""
    try:
        shard = Shard.parse(config.shard)
    except ConfigError as error:
        _refuse(str(error))
    place = config.hydra.run
    if "${now:" in OmegaConf.to_yaml(place):
        _refuse(f"shard={shard}: give hydra.run.dir=DIR, the same for all shards")
    with read_write(config.hydra):
        place.dir = str(Path(place.dir) / SHARDS / shard.folder)


def _refuse(problem: str) -> NoReturn:
    complain(problem)
    sys.exit(2)  # what a callback raises otherwise, Hydra shows as a warning


def _claim(config: DictConfig, kind: Literal["run", "sweep"]) -> None:
    """Claim the folder of the command; end the command if another one is using it."""
    from srs_eval.results.claim import claim  # not for --help and completion

    place = config.hydra[kind]
    folder = str(place.dir)
    is_dated = "${now:" in OmegaConf.to_yaml(place)
    for number in count(2):
        try:
            _command.claims.enter_context(claim(Path(place.dir)))
        except FolderInUseError as error:
            if not is_dated:
                complain(str(error))
                sys.exit(1)  # what a callback raises otherwise, Hydra shows as a warning
            with read_write(config.hydra):  # begun in the same second as another
                place.dir = f"{folder}_{number}"
                quoted = place.dir.replace("'", "\\'")
                config.hydra.overrides.hydra.append(f"hydra.{kind}.dir='{quoted}'")
        except OSError:
            return  # Hydra, or the job, will say what is wrong with the folder
        else:
            return


def job(cfg: DictConfig) -> float:
    """Run one job and return its log loss, or what else the search it is part of is about."""
    from srs_eval.config.building import build, resolved
    from srs_eval.experiment.attempt import Work, attempt  # heavy: not for --help and completion
    from srs_eval.experiment.job import run_job
    from srs_eval.experiment.plan import make_plan

    hydra_config = HydraConfig.get()
    choices = {group: str(name) for group, name in hydra_config.runtime.choices.items()}
    folder = Path(hydra_config.runtime.output_dir)
    in_sweep = hydra_config.mode == RunMode.MULTIRUN
    sweep_folder = Path(hydra_config.sweep.dir).resolve() if in_sweep else None
    trial = running_trial(hydra_config.sweeper)
    # not from this process, which may be the worker of a launcher
    sources = hydra_config.runtime.config_sources
    own = [Path(source.path) for source in sources if source.provider == option_files.OWN]
    here = Path.cwd()
    folders = [path.relative_to(here) if path.is_relative_to(here) else path for path in own]
    _print_once(option_files.shadowed_options(choices, folders))

    def plan() -> Work:
        # options that were swept over may differ from those the command began with
        refused = section_problems(cast(DictConfig, HydraConfig.instance().cfg))
        if refused:
            raise ConfigError("\n".join(refused))
        if cfg.study is not None:
            return _study(cfg, folder, choices, is_single=not in_sweep)
        content = resolved(cfg, choices)
        # what a trial that was cut short has finished is not done again
        content["resume"] |= trial is not None and trial.repeated
        built = build(cfg, choices)
        usual = option_files.values("algo", choices["algo"], folders)
        planned = make_plan(
            built,
            content,
            choices,
            usual=usual,
            folder=folder,
            sweep_folder=sweep_folder,
            trial=trial,
            words=[*(f"--config-dir={folder}" for folder in folders), *hydra_config.overrides.task],
            folders=folders,
        )
        return Work(planned.about.label, partial(run_job, planned))

    _command.reports_its_end = True
    done = attempt(
        plan,
        label=choices.get("algo", ""),
        folder=folder,
        sweep_folder=sweep_folder,
        metric="log_loss" if trial is None else trial.metric,
    )
    _command.reports_its_end = False
    _command.status = max(_command.status, done.exit_status)
    return done.value


def _study(cfg: DictConfig, folder: Path, choices: Mapping[str, str], *, is_single: bool) -> Work:
    """Plan a study of the folder experiments."""
    from srs_eval.config.building import build_option
    from srs_eval.experiment.attempt import Work
    from srs_eval.experiment.study import load_study, run_study

    options: Any = OmegaConf.to_container(cfg.study, resolve=True)
    tracking: Any = OmegaConf.to_container(cfg.tracking, resolve=True)
    name = str(options.pop("name"))
    keys = {w: w.lstrip("+~").partition("=")[0] for w in HydraConfig.get().overrides.task}
    others = [
        word
        for word, key in keys.items()
        if key.split(".")[0] not in _OF_A_STUDY or key == "experiment.prereg"
    ]
    if others:
        known = ", ".join(f"study.{option}=" for option in options)
        raise ConfigError(
            f"{', '.join(others)}: experiment={name} chooses these itself. Its options are {known} "
            "and those of tracking"
        )
    study = load_study(name, option_files.conf_folder().parent / "experiments")
    tracker = build_option("tracking", choices["tracking"], tracking)
    run = partial(run_study, study, name, options, folder, tracker, is_single=is_single)
    return Work(name, run)


def _print_once(texts: Sequence[str]) -> None:
    """Print texts that no job of the command has printed before."""
    for text in texts:
        if text not in _command.printed:
            _command.printed.add(text)
            complain(text)


def command(words: list[str]) -> int:
    """Run the command line `words` and return the exit status."""
    if "--version" in words:
        say(f"srs_eval {version('srs-eval')}")
        return 0
    parser = get_args_parser()
    parser.prog = "python -m srs_eval"
    # "intermixed" takes overrides before and after flags, which Hydra itself does not
    given, unknown = parser.parse_known_intermixed_args(words)
    folders = [Path(given.config_dir)] if given.config_dir else []
    if not given.shell_completion:
        for problem in option_files.package_problems():
            complain(problem)
    asked = [word.removesuffix("=?") for word in given.overrides if word.endswith("=?")]
    if asked and all(group in settings.GROUPS for group in asked):
        for group in asked:
            say(facts(option_files.described(group, folders)))
        return 0
    if given.help:
        say(option_files.help_page(folders))
        return 0
    flags = [word for word in words if word not in given.overrides]
    given.overrides = [
        settings.literally(word, is_sweep=given.multirun) for word in given.overrides
    ]
    problems = _flag_problems(parser.format_usage(), unknown) + _refused_flags(given)
    problems += option_files.bombs(folders)
    if not given.shell_completion:  # whose words are no overrides
        problems += settings.mistakes(given.overrides, folders)
    if problems:
        return _not_understood(problems)
    with ExitStack() as claims:
        _command.claims = claims
        return _run([*given.overrides, *flags], given, folders)


def _flag_problems(usage: str, unknown: list[str]) -> list[str]:
    known = [word.strip("[]|") for word in usage.split() if word.strip("[]|").startswith("--")]
    close = {word: difflib.get_close_matches(word.partition("=")[0], known, 1) for word in unknown}
    return [
        f"{word}: no such flag" + (f"; did you mean {meant[0]}?" if meant else "")
        for word, meant in close.items()
    ]


def _refused_flags(given: Namespace) -> list[str]:
    other = "srs_eval has one configuration; --config-dir FOLDER adds options to it"
    refused = {
        "--experimental-rerun": "would run what is in a pickle; repeat the command instead",
        "--config-path": other,
        "--config-name": other,
    }
    flags = {flag: flag.removeprefix("--").replace("-", "_") for flag in refused}
    return [f"{flag}: {refused[flag]}" for flag, name in flags.items() if vars(given)[name]]


def _not_understood(problems: list[str]) -> int:
    for problem in problems:
        complain(problem)
    complain("python -m srs_eval --help lists the options")
    return 2


def _run(words: list[str], given: Namespace, folders: list[Path]) -> int:
    settings.register_schema()
    _command.folder, _command.is_sweep, _command.report = None, False, False
    _command.printed, _command.status, _command.reports_its_end = set(), 0, False
    entry = hydra.main(
        config_path=str(option_files.conf_folder()), config_name="config", version_base="1.3"
    )(job)
    status = 0
    try:
        with _hydra_arguments(words), option_files.also_in(folders):
            only_shows = given.cfg or given.info or given.shell_completion
            if not only_shows and (refused := refused_before(given.overrides, folders)):
                return _not_understood(refused)
            entry()
    except SystemExit as end:  # --help and the like, and a run that was asked to stop
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except (HydraException, OmegaConfBaseException) as error:
        status = _not_understood([settings.explain(error, given.overrides)])
    except (YAMLError, ValueError) as error:
        status = _not_understood(option_files.unreadable(folders) or [str(error)])
    except RecursionError:
        itself = ["an option refers to itself, or is nested too deeply"]
        status = _not_understood(option_files.unreadable(folders) or itself)
    except OSError as error:
        unreadable = option_files.unreadable(folders) if error.errno is None else []
        if unreadable:  # which the loader of option files tells so
            return _not_understood(unreadable)
        named = "" if error.filename is None else f": {error.filename}"
        complain(f"cannot write the output folder: {error.strerror or error}{named}")
        status = 1
    except KeyboardInterrupt:
        status = stopping.exit_status()
    except RuntimeError as error:  # of a launcher: jobs record their own
        if not _command.is_sweep:
            raise
        reason = str(error).strip().partition("\n")[0]
        complain(f"the launcher lost a job: {type(error).__name__}: {reason}")
        status = 1
    if stopping.is_requested():
        status = stopping.exit_status()
        if not _command.reports_its_end:
            complain("interrupted")
    folder, status = started(), max(status, _command.status)
    if folder is not None and not folder.is_dir():
        if status == 0:
            complain(f"{folder} was removed or renamed during the run")
        return max(status, 1)
    if folder is not None:
        from srs_eval.experiment.jobs import report_jobs  # heavy: not for --help and completion

        of_jobs = report_jobs(folder, is_sweep=_command.is_sweep, report=_command.report)
        status = max(status, of_jobs)
    return status


@contextmanager
def _hydra_arguments(words: list[str]) -> Iterator[None]:
    """Pass arguments to Hydra by `sys.argv`, and have it raise its errors."""
    before, sys.argv = sys.argv, [*sys.argv[:1], *words]
    full_error = os.environ.get("HYDRA_FULL_ERROR")
    # Hydra would print its own account of an error and exit; with this it tells us instead.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = before
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full_error
