"""A configuration made into one job: an experiment, its description, and how it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from srs_eval.compute.interface import Compute
from srs_eval.compute.processes import Processes
from srs_eval.compute.serial import Serial
from srs_eval.compute.shard import ALL, Shard
from srs_eval.config.building import Inputs
from srs_eval.errors import ConfigError
from srs_eval.evaluation.limits import NO_LIMITS, FitLimits
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import EvaluationProtocol
from srs_eval.nouns.capabilities import undeclared
from srs_eval.place import Place, scheme_of
from srs_eval.results.folder import is_run
from srs_eval.run.description import RunDescription, described
from srs_eval.run.experiment import Experiment, learns_from_other_users
from srs_eval.tracking.tracker import Tracker, sweep_id
from srs_eval.tuning.progress import RunningTrial

# Words of a command that are about one algorithm, or one folder.
_OF_ONE_RUN = ("algo=", "algo.", "name=", "notes=", "resume=", "shard=", "parts=", "baseline=")
_NOT_NEGATIVE = ("seed", "curves_per_user", "parts_above")
# Where a process that is stuck can be ended.
_IN_PROCESSES = tuple(f"srs_eval.compute.{name}" for name in ("serial", "processes", "ray"))


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a command: what is evaluated, what describes it, and how it is carried out."""

    experiment: Experiment
    about: RunDescription
    # Nothing from here on changes a number
    folder: Path  # Folder of the results
    compute: Compute  # Where users are evaluated
    tracker: Tracker  # Where the run is logged
    resume: bool = False  # Whether to continue an interrupted run in the folder
    figures: bool = True  # Whether to draw figures
    # Folder of a finished run to compare with; None takes the first job of a sweep
    baseline: Path | None = None
    sweep_folder: Path | None = None  # Folder of all jobs, if this is one of several
    # Whether it may begin before the job before has ended, and whether there is one to wait for,
    # which prints its results first
    overlaps: bool = False
    waits: bool = False
    trial: RunningTrial | None = None  # The place of the job in a search
    parts: Place | None = None  # Where workers write their parts, if not in the folder
    parts_above: int = 1000  # The predictions of more users than this stay in parts
    shard: Shard | None = None  # The share of the users that is evaluated, if it is not all of them
    is_merge: bool = False  # Whether to take what shards have evaluated
    # How long fits may take, and whether to stop where all of them fail alike
    limits: FitLimits = NO_LIMITS
    check_lookahead: bool = True  # Whether to try an algorithm from elsewhere before the run
    # The words of the command, but for the algorithm and its options: they say what else is
    # evaluated on the same reviews
    words: Sequence[str] = ()

    @property
    def run_folder(self) -> Path:
        """Folder of the run; that of a shard is in it."""
        return self.folder if self.shard is None else self.folder.parents[1]

    @property
    def checks_algorithm(self) -> bool:
        """Whether an algorithm from elsewhere is tried here: once a search, or a set of shards."""
        is_first = self.trial is None or self.trial.number == 0
        is_first &= self.shard is None or self.shard.number == 1
        return self.check_lookahead and is_first and not self.is_merge

    @property
    def ahead(self) -> bool:
        """Whether other processes do its work while this one ends the job before."""
        in_processes = isinstance(self.compute, Processes)
        return self.overlaps and in_processes and not learns_from_other_users(self.experiment)

    @property
    def is_single(self) -> bool:
        """Whether this is the only job of its command."""
        return self.sweep_folder is None


def make_job(
    inputs: Inputs,
    folder: Path,
    sweep_folder: Path | None = None,
    trial: RunningTrial | None = None,
    words: Sequence[str] = (),
) -> Job:
    """Make a job of its configuration; `words` are those of the command."""
    content = inputs.settings
    negative = [f"{key}={content[key]}" for key in _NOT_NEGATIVE if content[key] < 0]
    if negative:
        raise ConfigError(f"{', '.join(negative)}: expected a whole number, 0 or more")
    limits = FitLimits(content["fit_timeout"], report=True, fail_fast=content["fail_fast"])
    name, algorithm = inputs.groups["algo"].name, inputs["algo"]
    if missing := undeclared(algorithm):
        raise ConfigError(
            f"algo={name}: {type(algorithm).__name__} does not declare {', '.join(missing)}; make "
            "it a subclass of srs_eval.nouns.Algorithm, or give it these attributes"
        )
    if trial is not None:
        _require_validation(inputs, trial)
    experiment, compute = Experiment.of(inputs), inputs["compute"]
    own_process = sweep_folder is not None or limits.timeout is not None
    kinds = {kind.__module__ for kind in type(compute).__mro__}
    if limits.timeout is not None and kinds.isdisjoint(_IN_PROCESSES):
        raise ConfigError("fit_timeout needs compute=serial, compute=processes or compute=ray")
    tags = _sweep_tags(sweep_folder, trial)
    return Job(
        experiment,
        described(inputs, tags),
        folder=folder,
        compute=_in_own_process(compute) if own_process else compute,
        tracker=inputs["tracking"],
        resume=content["resume"],
        figures=content["figures"],
        baseline=_finished_run(content.get("baseline"), folder),
        sweep_folder=sweep_folder,
        trial=trial,
        parts=_parts(content.get("parts"), folder, in_sweep=sweep_folder is not None),
        parts_above=content["parts_above"],
        shard=None if content["shard"] in (None, ALL) else Shard.parse(content["shard"]),
        is_merge=content["shard"] == ALL,
        limits=limits,
        check_lookahead=content["check_lookahead"],
        words=[word for word in words if not word.lstrip("+~").startswith(_OF_ONE_RUN)],
    )


def _parts(given: str | None, folder: Path, *, in_sweep: bool) -> Place | None:
    """Return where parts are written; each job of a sweep has a folder of its own there."""
    if given is None:
        return None
    place = Place.of(given)
    if scheme_of(given) == "hf":
        raise ConfigError(f"parts={given}: parts are written to s3://, gs://, abfss:// or a path")
    if not place.is_remote:
        place = Place.of(place.local.resolve())
        if folder.resolve().is_relative_to(place.local):
            raise ConfigError(f"parts={given}: has the folder of the run in it")
    return place / folder.name if in_sweep else place


def _in_own_process(compute: Compute) -> Compute:
    """Evaluate a job of a sweep, or one with a time limit for fits, in processes of its own.

    What an algorithm keeps outside its models (in a module, in a class) ends with them, so that no
    job learns from the test rows of another; and a process that hangs can be ended.
    """
    return Processes(1, compute.chunk) if isinstance(compute, Serial) else compute


def _sweep_tags(sweep_folder: Path | None, trial: RunningTrial | None) -> dict[str, str]:
    """Tag a job with its sweep, and a trial with its number."""
    tags = {} if sweep_folder is None else {"sweep_id": sweep_id(sweep_folder)}
    return tags if trial is None else {"trial": str(trial.number), **tags}


def _is_validation(protocol: EvaluationProtocol) -> bool:
    return bool(getattr(protocol, "is_validation", False))


def _wrong_objective(panel: Panel, option: str, trial: RunningTrial) -> list[str]:
    """Return why a search would not find what is best, if it would not."""
    better = {metric.name: metric.better for metric in panel}
    about = f"hydra.sweeper.metric={trial.metric}"
    if trial.metric not in better:
        return [f"{about}: not in panel={option}; there are {', '.join(better)}"]
    towards = {"lower": "minimize", "higher": "maximize"}.get(better[trial.metric])
    if towards is None:
        fit = ", ".join(name for name, way in better.items() if way in ("lower", "higher"))
        return [f"{about}: neither the lowest nor the highest is best; there are {fit}"]
    if trial.direction != towards:
        return [f"{about}: {better[trial.metric]} is better; add hydra.sweeper.direction={towards}"]
    return []


def _finished_run(baseline: str | None, own: Path) -> Path | None:
    """Make sure that there is a baseline to compare with before anything is fitted."""
    if baseline is None:
        return None
    folder = Path(baseline).expanduser()
    if not is_run(folder):
        raise ConfigError(
            f"baseline={baseline}: expected the folder of a finished run, with summary.json and "
            "scores.parquet"
        )
    if folder.resolve() == own.resolve():
        raise ConfigError(
            f"baseline={baseline}: this run would overwrite it; give another hydra.run.dir"
        )
    return folder


def _require_validation(inputs: Inputs, trial: RunningTrial) -> None:
    """Refuse a search that chooses by the rows it will be scored on, or by nothing."""
    problems = []
    if not _is_validation(inputs["protocol"]):
        problems.append(
            f"protocol={inputs.groups['protocol'].name}: a search by its test rows would flatter "
            "the best; take protocol=validation, which has rows before them (protocol.base=… for "
            "others than those of srs_benchmark)"
        )
    problems += _wrong_objective(inputs["panel"], inputs.groups["panel"].name, trial)
    if problems:
        raise ConfigError("\n".join(problems))
