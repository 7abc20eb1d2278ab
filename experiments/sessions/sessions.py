"""What a session says of forgetting: models that know it beside models that do not.

``python experiments/sessions/sessions.py --josh JOSH.csv --folder ANKI_MIT`` evaluates everything,
and rewrites the tables and the figure of the page beside it. JOSH.csv is the log of py-fsrs'
author in the columns of anki-revlogs-10k, ANKI_MIT a folder in the layout of that data set. Logs
that are not given are left out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

from srs_eval.algorithms.combined.blend import Blend
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.oracle import Oracle
from srs_eval.algorithms.sessions.forecast import Forecast, mixture
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Algorithm, Contribution, EvaluationProtocol, Source, User
from srs_eval.plots.contributions_plot import plot_contributions
from srs_eval.plots.style import house_style, new_figure, save_figure
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.stats.estimate import mean_of_users

HERE = Path(__file__).parent
SEED = 2026
FEWEST = 100
BETWEEN = r"(<!-- {0} -->\n).*?(<!-- /{0} -->)"
BASELINE, FULL = "FSRS-7", "session filter"

SMALL = {"features": "small", "width": 0.03, "level_width": 0.03}
MODELS: Mapping[str, Algorithm] = {
    "FSRS-6, whole days": Fsrs6(),
    BASELINE: Fsrs7(),
    "mixture": mixture(),
    "forecast on FSRS-7": Forecast(Fsrs7()),
    "forecast": Forecast(),
    "blend of FSRS-7, by day": Blend(Fsrs7()),
    "blend of FSRS-7, by review": Blend(Fsrs7(), every="review"),
    "session filter on published FSRS-6, whole days": SessionFilter(Fsrs6(fit="default")),
    "session filter, 12 features": SessionFilter(**SMALL),
    "session filter, weights by day": SessionFilter(every="day"),
    "session filter, no safeguard": SessionFilter(trust=1.0),
    FULL: SessionFilter(),
    "session filter on the mixture": SessionFilter(mixture()),
}


@dataclass(frozen=True)
class Evaluated:
    """Losses of the scored reviews of some users, by model, and contributions by user."""

    losses: Mapping[str, Mapping[User, np.ndarray]]
    contributions: tuple[tuple[Contribution, ...], ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(self.losses)

    def log_loss(self, model: str) -> float:
        """Mean over users of the mean loss."""
        return float(np.mean([loss.mean() for loss in self.losses[model].values()]))

    def difference(self, model: str) -> str:
        """Difference to the baseline with its 99 % interval over users, where there are several."""
        users = self.losses[model]
        gains = [users[user].mean() - self.losses[BASELINE][user].mean() for user in users]
        text = f"{np.mean(gains):+.4f}"
        if len(gains) < 2:
            return text
        low, high = mean_of_users(np.array(gains)).interval()
        return f"{text} [{low:+.4f}, {high:+.4f}]"


def evaluated(source: Source, models: Mapping[str, Algorithm]) -> Evaluated:
    """Evaluate the users of a source who have 100 scored reviews or more."""
    losses: dict[str, dict[User, np.ndarray]] = {}
    contributions = []
    for name, algorithm in models.items():
        # The same rows; the published FSRS-6 is made for whole days.
        protocol: EvaluationProtocol = (
            SrsBenchmark() if "whole days" in name else SrsBenchmarkEqualised()
        )
        work = EvaluateUser(source, algorithm, protocol, SEED, curves=0)
        for user in source.users():
            result = work(user)
            missing = [fit for fit in result.fits if not fit.predicts]
            if missing or result.predictions is None:
                raise SystemExit(f"{name}, user {user}: {missing}")
            if len(result.predictions) >= FEWEST:
                losses.setdefault(name, {})[user] = LogLoss().per_review(result.predictions)
                if name == FULL:
                    contributions.append(result.fits[-1].contributions)
        print(f"{source.name}: {name}", flush=True)  # noqa: T201
    return Evaluated(losses, tuple(contributions))


def sources(options: argparse.Namespace) -> Iterator[tuple[str, Source]]:
    """Yield the logs that there are, each with its name in the tables."""
    if options.josh is not None:
        columns = Columns(
            card="card_id",
            time=None,
            day="day_offset",
            elapsed_days="elapsed_days",
            elapsed_seconds="elapsed_seconds",
            duration_ms="duration",
        )
        yield "josh", ReviewTable(path=str(options.josh), columns=columns)
    if options.folder is not None:
        yield options.folder.name, RevlogsFolder(options.folder)
    for version in options.versions:
        users = SyntheticUsers(users=options.users, max_reviews=5_000, version=version)
        yield f"simulated, version {version}", users


def tables(found: Mapping[str, Evaluated]) -> tuple[str, str]:
    """Return the table of losses, and that of contributions."""
    when = {name: algorithm.when for name, algorithm in MODELS.items()}
    rows = []
    for name in [*MODELS, "oracle"]:
        cells = [name, when.get(name, "")]
        for result in found.values():
            known = name in result.models
            cells += (
                [f"{result.log_loss(name):.4f}", result.difference(name)] if known else [""] * 2
            )
        rows.append(cells)
    headers = ["model", "predicts"]
    for log in found:
        headers += [f"{log}: log loss", "to FSRS-7"]
    groups = [group.name for group in next(iter(found.values())).contributions[0]]
    worth = [[group, *(_worth(result, group) for result in found.values())] for group in groups]
    return _table(rows, headers), _table(worth, ["features", *found])


def _worth(result: Evaluated, group: str) -> str:
    every = [one for user in result.contributions for one in user if one.name == group]
    gains = np.array([one.gain for one in every])
    if len(every) == 1:
        return f"{1e4 * gains[0]:+.0f} ± {1e4 * every[0].standard_error:.0f}"
    return f"{1e4 * gains.mean():+.0f} ± {1e4 * gains.std(ddof=1) / np.sqrt(len(gains)):.0f}"


def _table(rows: list[list[str]], headers: list[str]) -> str:
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def draw(found: Mapping[str, Evaluated]) -> None:
    """Draw the contributions of each log beside each other."""
    with house_style():
        figure = new_figure(3.6 * len(found), 3.2)
        for axes, (log, result) in zip(
            figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
        ):
            plot_contributions(axes, result.contributions)
            axes.set_title(log)
    save_figure(figure, HERE, "contributions", formats=("png",))


def main() -> None:
    """Evaluate everything, and rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--josh", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--versions", type=int, nargs="*", default=[1, 2])
    found = {}
    for log, source in sources(parser.parse_args()):
        truth = {"oracle": Oracle()} if isinstance(source, SyntheticUsers) else {}
        found[log] = evaluated(source, {**MODELS, **truth})
    text = (HERE / "README.md").read_text(encoding="utf-8")
    for name, table in zip(("losses", "contributions"), tables(found), strict=True):
        pattern = re.compile(BETWEEN.format(name), re.S)
        text = pattern.sub(lambda match, table=table: f"{match[1]}\n{table}\n\n{match[2]}", text)
    (HERE / "README.md").write_text(text, encoding="utf-8")
    draw(found)


if __name__ == "__main__":
    main()
