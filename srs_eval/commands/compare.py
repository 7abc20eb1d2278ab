"""Compare finished runs from their saved scores; nothing is fitted again.

  python -m srs_eval.compare outputs/2026-01-31/12-00-00_sweep            all runs below a folder
  python -m srs_eval.compare RUN OTHER_RUN baseline=fsrs6 metric=brier    folders of runs
  python -m srs_eval.compare sweep_id=ten-844de1                          runs of the tracking store
  python -m srs_eval.compare results/per_user_metrics.parquet             published scores

A run is a folder with summary.json and scores.parquet. Runs with predictions.parquet are also
compared by strata of the reviews. Runs are compared on identical reviews only, checked by a digest
of each user's scored reviews. Output: a verdict and tables here; comparison.md, .tex, .csv, .json
and report.html in the folder.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from srs_eval.commands.cli import Argument, Command, Key, Local, Options
from srs_eval.errors import ConfigError
from srs_eval.nouns.when import When, when_named
from srs_eval.text.console import facts, say
from srs_eval.text.upstream import is_another_model

if TYPE_CHECKING:
    from srs_eval.comparison.verdict import Verdict
    from srs_eval.results.run import Run
    from srs_eval.tracking.comparison_run import Parent
    from srs_eval.tracking.tracker import RunLinks

# Not in the experiment of the runs: a comparison is no model in their charts.
EXPERIMENT = "srs_eval_comparisons"
# Tags by which the tracker can find a comparison.
_TAGS_OF_RUN = ("verdict", "metric", "baseline", "users")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(Options):
    """Options of the command."""

    runs: Argument[tuple[Path, ...]] = ()
    """folders of runs"""
    baseline: str | None = None
    """run the others are compared with: its name, algorithm or folder (the first)"""
    metric: str = "log_loss"
    """metric: log_loss, brier, auc, rmse_bins, smece, …"""
    latex: tuple[str, ...] = ()
    """only these tables in comparison.tex, by their labels, as in leaderboard_users or
    leaderboard,beside (all)
    """
    out: Local[Path | None] = None
    """folder of the files (outputs/DATE/TIME_compare)"""
    intersect: bool = False
    """true: compare on the reviews that all runs scored, instead of refusing runs that differ;
    without predictions.parquet of each run, on whole users
    """
    published: Path | None = None
    """published scores of each user to list beside the runs: a file or folder of the public
    srs-benchmark's results; only the users of the runs count
    """
    models: Annotated[tuple[str, ...], Key("published.models")] = ()
    """only these of the published models, as in fsrs6,lstm or 'fsrs*'; letters and digits of a name
    count
    """
    experiment: str | None = None
    """take all finished runs of this experiment of the tracking store"""
    sweep_id: str | None = None
    """take the runs of this sweep of the tracking store"""
    when: Literal[When, "ahead", "imm"] | None = None
    """take only runs whose predictions are made then: previous_review (or ahead), day_before,
    at_review (or imm)
    """
    tags: Annotated[Mapping[str, str], Key("tags.KEY")] = field(default_factory=dict)
    """take the runs of the tracking store with this tag, such as tags.algo=fsrs6"""
    tracking: Literal["mlflow", "none"] | None = None
    """mlflow: log the comparison as a run of its own; none: files only (mlflow, but none for
    published scores alone)
    """
    uri: Annotated[str | None, Key("tracking.uri")] = None
    """the tracking store (MLFLOW_TRACKING_URI, or mlflow.db)"""
    own_experiment: Annotated[str, Key("tracking.experiment")] = EXPERIMENT
    """experiment of the comparison"""
    artifacts: Annotated[str | None, Key("tracking.artifacts")] = None
    """place for the files of a new experiment"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        if not (self.runs or self.in_store or self.published):
            yield "name the folder of a run, or a folder that holds several"
        if self.models and not self.published:
            yield "published.models= needs published=PATH, the file or folder that has them"

    @property
    def in_store(self) -> dict[str, str]:
        """The tags of the runs that are taken from the tracking store, and their experiment."""
        chosen = {"experiment": self.experiment, "sweep_id": self.sweep_id}
        tags = {k: when_named(v) if k == "when" else v for k, v in self.tags.items()}
        return {name: value for name, value in (chosen | tags).items() if value}


def compare(options: Compare) -> int:
    """Compare, print the result, write the files, and log them with the tracker."""
    # Slow imports, which --help and mistakes do without.
    from srs_eval.comparison import compare as comparing
    from srs_eval.comparison.inputs import read_runs
    from srs_eval.comparison.report.files import chosen_tables, terminal_text, write_files
    from srs_eval.comparison.report.html import write_html
    from srs_eval.results.published import read_published

    out = (options.out or Path(f"outputs/{datetime.now():%Y-%m-%d/%H-%M-%S}_compare")).resolve()
    if out.exists() and not out.is_dir():
        raise ConfigError(f"out={out}: there is a file of that name")
    stored, without = _stored(options, out)
    runs, left_out = read_runs([*options.runs, *stored])
    yardsticks = read_published(options.published, options.models) if options.published else []
    left_out += without
    if options.when:
        runs, yardsticks = _predicting(when_named(options.when), runs, yardsticks)
    every = [*runs, *yardsticks]
    left_out += _alike_by_name_alone(every)
    if not every:
        raise ConfigError("\n".join(left_out) or "there are no finished runs")
    verdict = comparing.compare(
        runs,
        metric=options.metric,
        baseline=options.baseline,
        yardsticks=yardsticks,
        intersect=options.intersect,
        notes=left_out,
    )
    chosen_tables(verdict, options.latex)  # refuses names that no table has
    say(terminal_text(verdict))
    page = write_html(verdict, out, command=f"{command.program} {shlex.join(options.words)}")
    files = [*write_files(verdict, out, chosen=options.latex), page]
    say()
    say(facts({"results": str(out), "report": str(page)}))
    is_tracked = any(run.has_digests for run in verdict.paired.every_run)
    if options.tracking == "mlflow" or (options.tracking is None and is_tracked):
        links = _track(options, verdict, files, stored)
        shown = {"MLflow UI": links.ui_command, "this comparison": links.run_url}
        say(facts({name: text for name, text in shown.items() if text}))
    return 0


def _stored(options: Compare, out: Path) -> tuple[list[Path], list[str]]:
    """Fetch the requested runs of the tracking store; list those without results."""
    tags = options.in_store
    if not tags:
        return [], []
    from srs_eval.tracking.comparison_run import fetch_runs

    experiment = tags.pop("experiment", None)
    return fetch_runs(options.uri, out / "runs", experiment=experiment, tags=tags)


def _predicting(when: str, *groups: Sequence[Run]) -> list[list[Run]]:
    """Return the runs whose predictions are made at a time."""
    found = Counter(run.when for runs in groups for run in runs)
    if found and when not in found:
        times = ", ".join(f"{time} ({count})" for time, count in found.items())
        raise ConfigError(f"when={when}: no run predicts then; there are runs of {times}")
    return [[run for run in runs if run.when == when] for runs in groups]


def _alike_by_name_alone(runs: Sequence[Run]) -> list[str]:
    """Warn of runs that have the name of a published model and are another."""
    ours = {run.facts.algo for run in runs if run.facts.algo}
    theirs = [run.name for run in runs if not run.has_digests]
    found = [is_another_model(option, name) for option in ours for name in theirs]
    return [text for text in dict.fromkeys(found) if text]


def _track(
    options: Compare, verdict: Verdict, files: Sequence[Path], stored: Sequence[Path]
) -> RunLinks:
    """Log the comparison as a run of its own, with tags of the runs compared."""
    from srs_eval.comparison.report.files import as_json, markdown
    from srs_eval.tracking.comparison_run import log_comparison

    found = as_json(verdict)
    return log_comparison(
        [_parent(run, is_stored=run.place in stored) for run in verdict.paired.every_run],
        files,
        values={
            f"{verdict.metric}/{named.name}": float(mean)
            for run, mean in zip(verdict.runs, verdict.leaderboard.mean, strict=True)
            for named in (run, *verdict.paired.duplicates_of(run))
        },
        tags={
            **{name: str(found[name]) for name in _TAGS_OF_RUN if name in found},
            **{f"leader.{when}": name for when, name in found["leaders"].items()},
        },
        note=markdown(verdict).partition("\n## ")[0],
        uri=options.uri,
        experiment=options.own_experiment,
        artifacts=options.artifacts,
    )


def _parent(run: Run, *, is_stored: bool) -> Parent:
    """Describe a run to the tracker; the folder of a stored run is named after its id."""
    from srs_eval.run.jobs import read_outcome
    from srs_eval.tracking.comparison_run import Parent

    outcome = None if is_stored else read_outcome(run.place)
    tags = run.facts.tags
    return Parent(
        name=run.name,
        tags={
            "config_hash": str(tags.get("config_hash", "")),
            "code_hash": str(tags.get("code_hash", "")),
            "rows_fingerprint": run.facts.rows_fingerprint,
        },
        sweep_id=str(tags.get("sweep_id", "")),
        run_id=run.place.name if is_stored else outcome.run_id if outcome else "",
    )


command = Command("python -m srs_eval.compare", __doc__, Compare, compare)
