"""The command line: arguments to a configuration, a configuration to jobs."""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hydra._internal.hydra import Hydra
from hydra._internal.utils import get_args_parser
from hydra.conf import HydraConf
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, read_write
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from srs_eval.commands.cli import refused
from srs_eval.compute import stopping
from srs_eval.compute.shard import ALL, SHARDS, Shard
from srs_eval.config import option_files, settings
from srs_eval.config.hydra_section import Loader, composed
from srs_eval.errors import ConfigError, FolderInUseError
from srs_eval.text.console import complain, facts, say
from srs_eval.text.suggestion import suggestion
from srs_eval.tuning.progress import running_trial

if TYPE_CHECKING:
    from srs_eval.run.jobs import Planned, Steps

# Hydra's own sweeper and launcher.
_GRID = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
_IN_THIS_PROCESS = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
# Jobs of a grid that have begun when the one before them ends.
_AHEAD = 2
PROGRAM = "python -m srs_eval"
_OTHER = "srs_eval has one configuration; --config-dir FOLDER adds options to it"
_REFUSED = {
    "--experimental-rerun": "would run what is in a pickle; repeat the command instead",
    "--config-path": _OTHER,
    "--config-name": _OTHER,
}
# Flags that say what to do.
_SHOWING = ("--run", "--multirun", "--cfg", "--info", "--shell-completion")

# Folder of a job, and the steps that are left of it.
_Begun: TypeAlias = "tuple[Path, Steps[tuple[float, int]]]"


@dataclass
class _Command:
    """The folder and the state of the current command."""

    folder: Path | None = None
    is_sweep: bool = False
    report: bool = False
    printed: set[str] = field(default_factory=set)
    status: int = 0
    reports_its_end: bool = False
    begun: list[_Begun] = field(default_factory=list)  # Jobs that have not ended


_command = _Command()


def _begin(config: DictConfig, claims: ExitStack) -> None:
    """Claim and note the folder of a command before anything is written there."""
    if config.shard is not None and _command.is_sweep:
        raise ConfigError(f"shard={config.shard}: a single run is shared, without -m")
    if config.shard is not None and config.shard != ALL:
        _give_shard_a_folder(config)
    _command.folder, _command.report = _claimed(config, claims).resolve(), bool(config.report)
    # A search goes on with its trials; any other sweep says anew how each job ends.
    if _command.is_sweep and config.hydra.sweeper["_target_"] == _GRID:
        from srs_eval.run.jobs import forget_outcomes  # heavy: not for --help

        forget_outcomes(_command.folder)


def _give_shard_a_folder(config: DictConfig) -> None:
    """Let a shard put its own files in a folder of its own, in that of the run."""
    shard, place = Shard.parse(config.shard), config.hydra.run
    if "${now:" in OmegaConf.to_yaml(place):
        raise ConfigError(f"shard={shard}: give hydra.run.dir=DIR, the same for all shards")
    with read_write(config.hydra):
        place.dir = str(Path(place.dir) / SHARDS / shard.folder)


def _claimed(config: DictConfig, claims: ExitStack) -> Path:
    """Claim the folder of the command, or one beside it if it has the time in its name."""
    from srs_eval.results.claim import claim  # not for --help and completion

    kind = "sweep" if _command.is_sweep else "run"
    place = config.hydra[kind]
    folder = str(place.dir)
    is_dated = "${now:" in OmegaConf.to_yaml(place)
    for number in count(2):
        try:
            claims.enter_context(claim(Path(place.dir)))
        except FolderInUseError:
            if not is_dated:
                raise
            with read_write(config.hydra):  # begun in the same second as another
                place.dir = f"{folder}_{number}"
                quoted = place.dir.replace("'", "\\'")
                config.hydra.overrides.hydra.append(f"hydra.{kind}.dir='{quoted}'")
        except OSError:
            break  # Hydra, or the job, will say what is wrong with the folder
        else:
            break
    return Path(place.dir)


def job(cfg: DictConfig) -> float:
    """Run one job and return its log loss, or what else the search it is part of is about.

    Where nobody needs that number, the job begins, and one that has begun before ends.
    """
    from srs_eval.config.building import build, resolved
    from srs_eval.run.job import run_job  # heavy: not for --help and completion
    from srs_eval.run.jobs import attempt
    from srs_eval.run.plan import make_job

    hydra_config = HydraConfig.get()
    choices = {group: str(name) for group, name in hydra_config.runtime.choices.items()}
    folder = Path(hydra_config.runtime.output_dir)
    in_sweep = hydra_config.mode == RunMode.MULTIRUN
    sweep_folder = Path(hydra_config.sweep.dir).resolve() if in_sweep else None
    trial = running_trial(hydra_config.sweeper)
    # not from this process, which may be the worker of a launcher
    sources, here = hydra_config.runtime.config_sources, Path.cwd()
    own = [Path(source.path) for source in sources if source.provider == option_files.OWN]
    folders = [path.relative_to(here) if path.is_relative_to(here) else path for path in own]
    overlaps = _overlaps(hydra_config)
    if folder in [begun[0] for begun in _command.begun]:
        _end_begun()
    waits = bool(_command.begun)

    def plan() -> Planned:
        content = resolved(cfg, choices)
        # what a trial that was cut short has finished is not done again
        content["resume"] |= trial is not None and trial.repeated
        words = [*(f"--config-dir={folder}" for folder in folders), *_typed()]
        made = make_job(build(content, choices), folder, sweep_folder, trial, words)
        made = replace(made, overlaps=overlaps, waits=waits)
        return made.about.label, partial(run_job, made)

    with option_files.also_in(folders):
        for text in option_files.shadowed_options(choices):
            if text not in _command.printed:  # by an earlier job of the command
                _command.printed.add(text)
                complain(text)
        steps = attempt(
            plan,
            label=choices.get("algo", ""),
            folder=folder,
            sweep_folder=sweep_folder,
            metric="log_loss" if trial is None else trial.metric,
        )
        _command.begun.append((folder, steps))
        _take_step(_command.begun[-1])
        return _end_begun(but=_AHEAD if overlaps else 0)


def _overlaps(command: HydraConf) -> bool:
    """Whether jobs of a command may begin before the one before is ended, in this process."""
    if sys.platform == "win32":  # where each worker would load matplotlib anew
        return False
    in_order = command.mode == RunMode.MULTIRUN and command.sweeper["_target_"] == _GRID
    is_here = command.launcher["_target_"] == _IN_THIS_PROCESS
    return in_order and is_here and not command.callbacks  # which are told the value


def _take_step(begun: _Begun) -> float:
    """Let a job take a step; return its value if it ends, or NaN."""
    _command.reports_its_end = True
    try:
        next(begun[1])
        value, status = math.nan, 0
    except StopIteration as end:
        _command.begun.remove(begun)
        value, status = end.value
    _command.status = max(_command.status, status)
    _command.reports_its_end = False
    return value


def _end_begun(but: int = 0) -> float:
    """End the jobs that have begun, but for the last ones, and return the value of the last."""
    value = math.nan
    while len(_command.begun) > but:
        value = _take_step(_command.begun[0])
    return value


def _typed() -> list[str]:
    """Return the words of the job as they were typed: nothing they refer to is looked up."""
    words: Any = OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)
    return list(words)


def command(words: list[str]) -> int:
    """Run the command line `words` and return the exit status."""
    if "--version" in words:
        say(f"srs_eval {version('srs-eval')}")
        return 0
    parser = get_args_parser()
    parser.prog = PROGRAM
    # "intermixed" takes overrides before and after flags, which Hydra itself does not
    given, unknown = parser.parse_known_intermixed_args(words)
    with option_files.also_in([Path(given.config_dir)] if given.config_dir else []):
        return _done(given, unknown, parser)


def _done(given: Namespace, unknown: Sequence[str], parser: ArgumentParser) -> int:
    """Do what a command line asks for, and return the exit status."""
    if not given.shell_completion:
        for problem in option_files.package_problems():
            complain(problem)
    asked = [word.removesuffix("=?") for word in given.overrides if word.endswith("=?")]
    if asked and all(group in settings.GROUPS for group in asked):
        for group in asked:
            say(facts(option_files.described(group)))
        return 0
    if given.help:
        say(option_files.help_page())
        return 0
    given.overrides = [
        settings.literally(word, is_sweep=given.multirun) for word in given.overrides
    ]
    problems = [*_flag_problems(given, unknown, parser.format_usage()), *option_files.harmful()]
    if not given.shell_completion:  # whose words are no overrides
        problems += settings.mistakes(given.overrides)
    if problems:
        return refused(PROGRAM, problems)
    settings.register_schema()
    vars(_command).update(vars(_Command()))
    with ExitStack() as claims:
        return _ended(_run(given, parser, claims))


def _flag_problems(given: Namespace, unknown: Sequence[str], usage: str) -> Iterator[str]:
    known = [word.strip("[]|") for word in usage.split() if word.strip("[]|").startswith("--")]
    for word in unknown:
        meant = suggestion(word.partition("=")[0], known, form="{}")
        yield f"{word}: no such flag{meant}"
    typed = {flag: vars(given).get(flag.removeprefix("--").replace("-", "_")) for flag in known}
    yield from (f"{flag}: {_REFUSED[flag]}" for flag in _REFUSED if typed[flag])
    chosen = [flag for flag in _SHOWING if typed[flag]]
    if len(chosen) > 1:
        yield f"{' '.join(chosen)}: choose one of them"
    if given.resolve and not given.cfg:
        yield "--resolve: only with --cfg"
    if given.config_dir and not Path(given.config_dir).is_dir():
        yield f"--config-dir={given.config_dir}: there is no such folder"


def _run(given: Namespace, parser: ArgumentParser, claims: ExitStack) -> int:
    """Run what a command line asks for, tell errors, and return the exit status."""
    try:
        _start(given, parser, claims)
    except ConfigError as error:
        return refused(PROGRAM, error.args)
    except SystemExit as end:  # of completion, and of a run that was asked to stop
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (HydraException, OmegaConfBaseException) as error:
        return refused(PROGRAM, [settings.explain(error, given.overrides)])
    except (YAMLError, ValueError) as error:
        return refused(PROGRAM, option_files.unreadable() or [str(error)])
    except RecursionError:
        itself = ["an option refers to itself, or is nested too deeply"]
        return refused(PROGRAM, option_files.unreadable() or itself)
    except FolderInUseError as error:
        complain(str(error))
        return 1
    except OSError as error:
        unreadable = option_files.unreadable() if error.errno is None else []
        if unreadable:  # which the loader of option files tells so
            return refused(PROGRAM, unreadable)
        named = "" if error.filename is None else f": {error.filename}"
        complain(f"cannot write the output folder: {error.strerror or error}{named}")
        return 1
    except KeyboardInterrupt:
        return stopping.exit_status()
    except RuntimeError as error:  # of a launcher: jobs record their own
        if not _command.is_sweep:
            raise
        reason = str(error).strip().partition("\n")[0]
        complain(f"the launcher lost a job: {type(error).__name__}: {reason}")
        return 1
    return 0


def _ended(status: int) -> int:
    """Report the jobs of the command, and return the exit status."""
    if stopping.is_requested():
        status = stopping.exit_status()
        if not _command.reports_its_end:
            complain("interrupted")
    folder, status = _command.folder, max(status, _command.status)
    if folder is None:
        return status
    if not folder.is_dir():
        if status == 0:
            complain(f"{folder} was removed or renamed during the run")
        return max(status, 1)
    if not _command.is_sweep:  # it has printed its own table
        return status
    from srs_eval.run.jobs import report_jobs  # heavy: not for --help and completion

    return max(status, report_jobs(folder, report=_command.report))


def _start(given: Namespace, parser: ArgumentParser, claims: ExitStack) -> None:
    """Compose the configuration, once, and have Hydra show or run it."""
    loader, words = Loader(), [*given.overrides, *["hydra.mode=MULTIRUN"] * given.multirun]
    hydra = Hydra("srs_eval", loader)
    GlobalHydra.instance().initialize(hydra)
    try:
        if given.cfg:
            hydra.show_cfg("config", words, given.cfg, given.package, given.resolve)
        elif given.shell_completion:
            hydra.shell_completion("config", words)
        elif given.info:
            hydra.show_info(given.info, "config", words)
        else:
            config = composed(loader, words)
            if given.hydra_help:
                hydra.hydra_help("config", parser, given)
                return
            _command.is_sweep = config.hydra.mode == RunMode.MULTIRUN
            if not _command.is_sweep:
                config = _single(config, loader, words)
            _begin(config, claims)
            loader.ready = config
            (hydra.multirun if _command.is_sweep else hydra.run)("config", job, words)
            _end_begun()
    finally:
        GlobalHydra.instance().clear()
        with ExitStack() as others:  # of an interrupted job
            for _, steps in reversed(_command.begun):
                others.callback(steps.close)


def _single(config: DictConfig, loader: Loader, words: list[str]) -> DictConfig:
    """Return the configuration of a single run, which was composed as that of a sweep."""
    parsed = OverridesParser.create().parse_overrides(words)
    choices = config.hydra.runtime.choices.values()
    if "???" in choices or any(override.is_sweep_override() for override in parsed):
        config = loader.load_configuration("config", words, RunMode.RUN)  # or tell what is wrong
    if config.hydra.mode is None:
        config.hydra.mode = RunMode.RUN
        config.hydra.overrides.hydra.append("hydra.mode=RUN")
    HydraConfig.instance().set_config(config)  # which the default folder is named after
    return config
