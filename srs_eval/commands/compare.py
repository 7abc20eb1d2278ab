"""`python -m srs_eval.compare`: compare finished runs from their saved scores."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from srs_eval.commands.arguments import Words, carry_out, explained, sort_words
from srs_eval.errors import ConfigError
from srs_eval.nouns.when import ALIASES, WHEN, when_named
from srs_eval.text.console import facts, say

if TYPE_CHECKING:
    from srs_eval.comparison.verdict import Verdict
    from srs_eval.results.run import Run
    from srs_eval.tracking.comparison_run import Parent
    from srs_eval.tracking.tracker import RunLinks

PROGRAM = "python -m srs_eval.compare"
# Not in the experiment of the runs: a comparison is no model in their charts.
EXPERIMENT = "srs_eval_comparisons"
KEYS = {
    "baseline": "run the others are compared with: its name, algorithm or folder (the first)",
    "prereg": "a pre-registration: judge its hypothesis; it chooses the baseline and the metric",
    "metric": "metric: log_loss (default), brier, auc, rmse_bins, smece, …",
    "latex": "only these tables in comparison.tex, by their labels, as in leaderboard_users or "
    "leaderboard,beside (all)",
    "out": "folder of the files (outputs/DATE/TIME_compare)",
    "intersect": "true: compare on the reviews that all runs scored, instead of refusing runs that "
    "differ; without predictions.parquet of each run, on whole users",
    "published": "published scores of each user to list beside the runs: a file or folder of the "
    "public srs-benchmark's results; only the users of the runs count",
    "published.models": "only these of the published models, as in fsrs6,lstm or 'fsrs*'; letters "
    "and digits of a name count",
    "experiment": "take all finished runs of this experiment of the tracking store",
    "sweep_id": "take the runs of this sweep of the tracking store",
    "when": "take only runs whose predictions are made then: previous_review (or ahead), "
    "day_before, at_review (or imm)",
    "tags.KEY": "take the runs of the tracking store with this tag, such as tags.algo=fsrs6",
    "tracking": "mlflow: log the comparison as a run of its own; none: files only",
    "tracking.uri": "the tracking store (MLFLOW_TRACKING_URI, or mlflow.db)",
    "tracking.experiment": f"experiment of the comparison ({EXPERIMENT})",
    "tracking.artifacts": "place for the files of a new experiment",
}
_TAGS = "tags."
# Tags by which the tracker can find a comparison.
_TAGS_OF_RUN = ("verdict", "metric", "baseline", "users", "options_compared_on")
_CHOICES = {
    "intersect": ("true", "false"),
    "tracking": ("mlflow", "none"),
    "when": (*WHEN, *ALIASES),
}
_HELP = f"""Compare finished runs from their saved scores; nothing is fitted again.

  {PROGRAM} outputs/2026-01-31/12-00-00_sweep            all runs below a folder
  {PROGRAM} RUN OTHER_RUN baseline=fsrs6 metric=brier    folders of runs
  {PROGRAM} sweep_id=ten-844de1                          runs of the tracking store
  {PROGRAM} results/per_user_metrics.parquet             published scores of each user
  {PROGRAM} prereg=hypothesis.yaml                       check a pre-registration; no runs yet

A run is a folder with summary.json and scores.parquet. Runs with predictions.parquet are also
compared by strata of the reviews.

Options, KEY=VALUE:

{explained(KEYS)}

Output: a verdict and tables here; comparison.md, .tex, .csv, .json and report.html in the folder.
Runs are compared on identical reviews only, checked by a digest of each user's scored reviews.
Flags: --help, --version. Exit status: 0 if runs were compared, 1 if something failed, 2 if the
command was not understood or the runs cannot be compared."""


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(lambda: _compare(parse(words), words), words, program=PROGRAM, help_page=_HELP)


def parse(words: Sequence[str]) -> Words:
    """Parse a command line."""
    found = sort_words(words, KEYS, choices=_CHOICES)
    problems = []
    elsewhere = _store_filter(found.options) or "published" in found.options
    if not (found.problems or found.paths or elsewhere or "prereg" in found.options):
        problems.append("name the folder of a run, or a folder that holds several")
    if "published.models" in found.options and "published" not in found.options:
        problems.append("published.models= needs published=PATH, the file or folder that has them")
    return found.usable(*problems)


def _compare(request: Words, words: Sequence[str]) -> int:
    """Compare, print the result, write the files, and log them with the tracker."""
    # Slow imports, which --help and mistakes do without.
    from srs_eval.comparison.compare import compare
    from srs_eval.comparison.inputs import read_runs
    from srs_eval.comparison.judging import judge, verdicts_of
    from srs_eval.comparison.prereg import read_prereg
    from srs_eval.comparison.published import read_published
    from srs_eval.comparison.report.files import chosen_tables, terminal_text, write_files
    from srs_eval.comparison.report.html import write_html

    stamp = f"{datetime.now():%Y-%m-%d/%H-%M-%S}_compare"
    out = (request.path("out") or Path("outputs") / stamp).resolve()
    if out.exists() and not out.is_dir():
        raise ConfigError(f"out={out}: there is a file of that name")
    file = request.path("prereg")
    prereg = read_prereg(file) if file else None
    if prereg is not None and not request.paths and set(request.options) == {"prereg"}:
        say(facts(prereg.in_words))
        return 0
    stored, without = _stored(request, out)
    runs, left_out = read_runs([*request.paths, *stored])
    published = request.path("published")
    models = list(filter(None, request.options.get("published.models", "").split(",")))
    yardsticks = read_published(published, models) if published else []
    if "when" in request.options:
        when = when_named(request.options["when"])
        found = Counter(run.when for run in (*runs, *yardsticks))
        if found and when not in found:
            times = ", ".join(f"{time} ({count})" for time, count in found.items())
            raise ConfigError(f"when={when}: no run predicts then; there are runs of {times}")
        runs = [run for run in runs if run.when == when]
        yardsticks = [run for run in yardsticks if run.when == when]
    left_out += without
    if not runs and not yardsticks:
        raise ConfigError("\n".join(left_out) or "there are no finished runs")
    every = [*runs, *yardsticks]
    verdict = compare(
        runs,
        metric=request.options.get("metric", prereg.metric if prereg else "log_loss"),
        baseline=request.options.get("baseline", prereg.baseline if prereg else None),
        yardsticks=yardsticks,
        intersect=request.options.get("intersect") == "true",
        notes=[*left_out, *(judge(prereg, every).lines if prereg else verdicts_of(every))],
    )
    tables = [name for name in request.options.get("latex", "").split(",") if name]
    chosen_tables(verdict, tables)  # refuses names that no table has
    say(terminal_text(verdict))
    page = write_html(verdict, out, command=f"{PROGRAM} {shlex.join(words)}")
    files = [*write_files(verdict, out, chosen=tables), page]
    say()
    say(facts({"results": str(out), "report": str(page)}))
    links = _track(request, verdict, files, stored)
    if links is not None:
        shown = {"MLflow UI": links.ui_command, "this comparison": links.run_url}
        say(facts({name: text for name, text in shown.items() if text}))
    return 0


def _stored(request: Words, out: Path) -> tuple[list[Path], list[str]]:
    """Fetch the requested runs of the tracking store; list those without results."""
    tags = _store_filter(request.options)
    if not tags:
        return [], []
    from srs_eval.tracking.comparison_run import fetch_runs

    experiment = tags.pop("experiment", None)
    uri = request.options.get("tracking.uri")
    return fetch_runs(uri, out / "runs", experiment=experiment, tags=tags)


def _store_filter(options: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of the requested runs of the tracking store, and their experiment."""
    return {
        key.removeprefix(_TAGS): when_named(value) if key == "tags.when" else value
        for key, value in options.items()
        if key in ("experiment", "sweep_id") or key.startswith(_TAGS)
    }


def _track(
    request: Words, verdict: Verdict, files: Sequence[Path], stored: Sequence[Path]
) -> RunLinks | None:
    """Log the comparison as a run of its own, with tags of the runs compared."""
    if request.options.get("tracking") == "none":
        return None
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
        uri=request.options.get("tracking.uri"),
        experiment=request.options.get("tracking.experiment", EXPERIMENT),
        artifacts=request.options.get("tracking.artifacts"),
    )


def _parent(run: Run, *, is_stored: bool) -> Parent:
    """Describe a run to the tracker; the folder of a stored run is named after its id."""
    from srs_eval.experiment.jobs import read_outcome
    from srs_eval.tracking.comparison_run import Parent

    outcome = None if is_stored else read_outcome(run.place)
    tags = run.summary.get("tags", {})
    return Parent(
        name=run.name,
        tags={
            "config_hash": str(tags.get("config_hash", "")),
            "code_hash": str(tags.get("code_hash", "")),
            "rows_fingerprint": str(run.summary.get("rows_fingerprint", "")),
        },
        sweep_id=str(tags.get("sweep_id", "")),
        run_id=run.place.name if is_stored else outcome.run_id if outcome else "",
    )
