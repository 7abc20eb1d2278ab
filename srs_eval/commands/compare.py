"""`python -m srs_eval.compare`: from finished runs to a verdict; nothing is fitted again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from srs_eval.commands.arguments import (
    carry_out,
    exit_with,
    explained,
    sort_words,
)
from srs_eval.errors import ConfigError
from srs_eval.text.console import facts, say

if TYPE_CHECKING:
    from srs_eval.comparison.verdict import Verdict
    from srs_eval.tracking.tracker import RunLinks

PROGRAM = "python -m srs_eval.compare"
# Away from the runs that are compared: a comparison is no model in their charts.
EXPERIMENT = "srs_eval_comparisons"
KEYS = {
    "baseline": "the run the others are compared with: its name, algorithm or folder (the first)",
    "metric": "what is compared: log_loss unless said, or brier, auc, rmse_bins, smece, …",
    "out": "where the files go (outputs/DATE/TIME_compare)",
    "intersect": "true: compare on the reviews that all runs scored, where runs that differ would "
    "be refused; needs predictions.parquet of each, and goes by whole users otherwise",
    "published": "published scores of each user to put beside the runs: a file or folder of the "
    "public srs-benchmark's results; only the users of the runs count",
    "experiment": "take all finished runs of this experiment of the tracking store",
    "sweep_id": "take the runs of this sweep of the tracking store",
    "tags.KEY": "take the runs of the tracking store with this tag, such as tags.algo=fsrs6",
    "tracking": "mlflow: keep the comparison as a run of its own; none: files only",
    "tracking.uri": "the tracking store (MLFLOW_TRACKING_URI, or mlflow.db)",
    "tracking.experiment": f"where the comparison is kept ({EXPERIMENT})",
    "tracking.artifacts": "where files of a new experiment are kept",
}
_TAGS = "tags."
# What the tracker can find a comparison by.
_TAGS_OF_RUN = ("verdict", "metric", "baseline", "users", "options_compared_on")
_CHOICES = {"intersect": ("true", "false"), "tracking": ("mlflow", "none")}
_HELP = f"""Compare finished runs from their saved scores; nothing is fitted again.

  {PROGRAM} outputs/2026-01-31/12-00-00_sweep            all runs below a folder
  {PROGRAM} RUN OTHER_RUN baseline=fsrs6 metric=brier    folders of runs
  {PROGRAM} sweep_id=ten-844de1                          runs of the tracking store
  {PROGRAM} results/per_user_metrics.parquet             published scores of each user

A run is a folder with summary.json and scores.parquet. Where models differ is said of runs that
kept their predictions.parquet.

Further words, KEY=VALUE:

"""
_HELP_END = """

Results: a verdict and tables here; comparison.md, .tex, .csv, .json and report.html in the folder.
Runs are compared on identical reviews only: by user, each user's digest of the scored reviews.
Flags: --help, --version. Exit status: 0 if runs were compared, 1 if something failed, 2 if the
command was not understood or the runs cannot be compared."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for.

    Attributes
    ----------
    paths : tuple of Path
        Runs to compare.
    options : mapping of str to str
        Values of the keys that were given.
    """

    paths: tuple[Path, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    def path(self, key: str) -> Path | None:
        """Value of a key as a path."""
        return Path(self.options[key]).expanduser() if self.options.get(key) else None


def main() -> None:
    """Run the command and exit."""
    exit_with(command)


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _compare(understood(words), words),
        words,
        program=PROGRAM,
        help_page=_HELP + explained(KEYS) + _HELP_END,
    )


def understood(words: Sequence[str]) -> Asked:
    """Read a command line.

    Raises
    ------
    ConfigError
        Naming everything that is wrong with it, and what was probably meant.
    """
    found = sort_words(words, KEYS, choices=_CHOICES)
    problems = list(found.problems)
    elsewhere = _asked_of_store(found.options) or "published" in found.options
    if not problems and not found.paths and not elsewhere:
        problems.append("name the folder of a run, or a folder that holds several")
    if problems:
        raise ConfigError(*problems)
    return Asked(found.paths, found.options)


def _compare(asked: Asked, words: Sequence[str]) -> int:
    """Compare, print and write the result, and log it to the tracker."""
    # Heavy, all of these: not for --help and for mistakes.
    from srs_eval.comparison.inputs import given_runs
    from srs_eval.comparison.pairing import pair
    from srs_eval.comparison.published import read_published
    from srs_eval.comparison.report.files import terminal_text, write_files
    from srs_eval.comparison.report.html import write_html
    from srs_eval.comparison.verdict import judge
    from srs_eval.results.run import with_own_names

    stamp = f"{datetime.now():%Y-%m-%d/%H-%M-%S}_compare"
    out = (asked.path("out") or Path("outputs") / stamp).resolve()
    if out.exists() and not out.is_dir():
        raise ConfigError(f"out={out}: there is a file of that name")
    stored, without = _stored(asked, out)
    runs, left_out = given_runs([*asked.paths, *stored])
    left_out += without
    published = asked.path("published")
    yardsticks = read_published(published) if published else []
    named = with_own_names([*runs, *yardsticks])
    if not named:
        raise ConfigError("\n".join(left_out) or "there are no finished runs")
    paired = pair(
        named[: len(runs)],
        named[len(runs) :],
        intersect=asked.options.get("intersect") == "true",
        notes=left_out,
    )
    verdict = judge(
        paired,
        metric=asked.options.get("metric", "log_loss"),
        baseline=asked.options.get("baseline"),
    )
    say(terminal_text(verdict))
    typed = f"{PROGRAM} {shlex.join(words)}"
    page = write_html(verdict, out, command=typed)
    files = [*write_files(verdict, out), page]
    say()
    say(facts({"results": str(out), "report": str(page)}))
    links = _tracked(asked, verdict, files, stored)
    if links is not None:
        shown = {"MLflow UI": links.ui_command, "this comparison": links.run_url}
        say(facts({name: text for name, text in shown.items() if text}))
    return 0


def _stored(asked: Asked, out: Path) -> tuple[list[Path], list[str]]:
    """Fetch runs from the tracking store, if any were asked for; say which have no results."""
    tags = _asked_of_store(asked.options)
    if not tags:
        return [], []
    from srs_eval.tracking.comparison_run import fetch_runs

    experiment = tags.pop("experiment", None)
    uri = asked.options.get("tracking.uri")
    return fetch_runs(uri, out / "runs", experiment=experiment, tags=tags)


def _asked_of_store(options: Mapping[str, str]) -> dict[str, str]:
    """Tags that runs of the tracking store should have, and their experiment."""
    return {
        key.removeprefix(_TAGS): value
        for key, value in options.items()
        if key in ("experiment", "sweep_id") or key.startswith(_TAGS)
    }


def _tracked(
    asked: Asked,
    verdict: Verdict,
    files: Sequence[Path],
    stored: Sequence[Path],
) -> RunLinks | None:
    """Keep the comparison as a run of its own, with tags that lead to the runs compared."""
    if asked.options.get("tracking") == "none":
        return None
    from srs_eval.comparison.report.files import as_json, markdown
    from srs_eval.tracking.comparison_run import Parent, keep_comparison

    parents = [
        Parent(
            run.name,
            {
                "config_hash": str(run.summary.get("tags", {}).get("config_hash", "")),
                "code_hash": str(run.summary.get("tags", {}).get("code_hash", "")),
                "rows_fingerprint": str(run.summary.get("rows_fingerprint", "")),
            },
            str(run.summary.get("tags", {}).get("sweep_id", "")),
            # runs that were fetched lie in folders that are called as they are
            run.place.name if run.place in stored else _run_id(run.place),
        )
        for run in verdict.paired.every_run
    ]
    found = as_json(verdict)
    return keep_comparison(
        parents,
        files,
        values={
            f"{verdict.metric}/{named.name}": float(mean)
            for run, mean in zip(verdict.runs, verdict.board.mean, strict=True)
            for named in (run, *verdict.paired.duplicates_of(run))
        },
        tags={name: str(found[name]) for name in _TAGS_OF_RUN if name in found},
        note=markdown(verdict).partition("\n## ")[0],
        uri=asked.options.get("tracking.uri"),
        experiment=asked.options.get("tracking.experiment", EXPERIMENT),
        artifacts=asked.options.get("tracking.artifacts"),
    )


def _run_id(folder: Path) -> str:
    from srs_eval.experiment.jobs import read_outcome

    outcome = read_outcome(folder)
    return "" if outcome is None else outcome.run_id


if __name__ == "__main__":
    main()
