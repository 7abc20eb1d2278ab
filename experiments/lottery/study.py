"""What an interval does to recall: Anki's fuzz, read as a randomised experiment.

``python experiments/lottery/study.py data.path='[my.colpkg]'`` studies collections of Anki; without
them, simulations, and with ``anki_mit=FOLDER`` also a public collection.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import Options, existing, panels, write
from estimates import Effect, within
from hydra.core.config_store import ConfigStore
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rules import Rule
from simulations import (
    HABITS,
    Critics,
    Curve,
    associational,
    critics_case,
    honest,
    said_by,
    truth,
    write_collection,
)
from trials import Lottery, play
from verdicts import (
    answers_table,
    attrition,
    balance,
    draws_table,
    log_loss,
    models_table,
    ratio,
    slope,
)

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, SMALL, VERMILION

ASSOCIATIONAL, HONEST, TRUTH = "associational", "honest curve", "the truth"
MODELS: Mapping[str, Callable[[Critics, Critics], Curve]] = {
    ASSOCIATIONAL: associational,
    HONEST: honest,
    TRUTH: truth,
}
COLLECTION = "collection.anki21"
ALL = "any rule"
FORMATS = {
    **dict.fromkeys(("rejected", "covered", "matched"), ".1%"),
    **dict.fromkeys(("imbalance above 4", "refused"), ".0%"),
    **dict.fromkeys(("ratio", "se by user", "modifier", "± (of the mean)"), ".2f"),
    **{"se": ".3f", "t": ".1f", "attrition, t": ".1f", "mean deviation, se": "+.2f"},
    **{"low": "+.2f", "high": "+.2f", "users": ".0f"},
}
COLOURS = (BLUE, VERMILION, GREEN, INK)
DASHES = ("-", "--", "-.", ":")
GROUPS = 8
LEAST, MOST = -0.4, 0.4  # of the axis of ratios, and what is free right of the largest


@dataclass
class Data:
    """Which collections are studied."""

    path: list[str] | None = None  # collections of Anki, or packages; None: the simulations


@dataclass
class LotteryOptions(Options):
    """Options of the study."""

    algo: list[str] = field(default_factory=lambda: ["fsrs6", "fsrs7", "hlr", "anki_sm2"])
    data: Data = field(default_factory=Data)
    anki_mit: str | None = None  # folder with the public collection


def of_critics(simulations: int, n: int, seed: int = 2026) -> tuple[pd.DataFrame, Figure]:
    """Simulate the critics' case; return how each model fares, and the figure of the last."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(simulations):
        train, test = critics_case(rng, n), critics_case(rng, n)
        last = []
        for name, learn in MODELS.items():
            said = said_by(learn(train, test), test)
            recalled, card = (test.trials[each].to_numpy() for each in ("recalled", "card"))
            one = ratio(said, recalled, card)
            row = {"model": name, "log loss": log_loss(said, recalled), "ratio": one.value}
            row |= {"se": one.se, "rejected": not one.low <= 1 <= one.high}
            rows.append(row)
            its = slope(test.trials, said["actual"].to_numpy()).value
            last.append(row | {"reviews": n, "slope": its, "low": one.low, "high": one.high})
    ways = {"log loss": "mean", "ratio": "median", "se": "median", "rejected": "mean"}
    table = pd.DataFrame(rows).groupby("model", sort=False).agg(ways).reset_index()
    title = f"the critics' case, simulated: {n:,} reviews"
    return table, draw(test.trials, pd.DataFrame(last), title)


def of_collections(
    simulations: int,
    cards: int,
    algorithms: Sequence[str],
    *,
    rules: Sequence[Rule] = (Rule.V1, Rule.V2, Rule.V3),
    habit: str = "",
) -> pd.DataFrame:
    """Simulate collections, each by one of the rules, and study them; a row for each and a model.

    Columns are whether the interval of the ratio contains that of the truth, the latter, how far
    the ratio is from it, attrition and the largest imbalance in standard errors, and whether the
    ratio is refused. Collections that are refused as a whole are left out.
    """
    rows = []
    built = {name: se.algorithm(name) for name in algorithms}
    for number in range(simulations):
        rule, rng = rules[number % len(rules)], np.random.default_rng(number)
        with tempfile.TemporaryDirectory() as folder:
            one = AnkiCollection(Path(folder) / f"{number}.anki2")
            true = write_collection(one.path, rng, cards=cards, rule=rule, habit=habit)
            lottery = play([one], built)
            log = one.read_with_table(one.users()[0])
        if not len(lottery.draws):
            continue
        trials = lottery.trials
        recall = true[log.rows[np.searchsorted(log.reviews.row, trials["next_row"])]]
        common = {
            "drawn by": str(rule),
            "attrition": attrition(lottery.draws).t,
            "imbalance": max(abs(each.t) for each in balance(lottery.draws).values()),
        }
        for model in models_table(lottery).to_dict("records"):
            said = lottery.predictions[model["model"]]
            truth = ratio(said, recall, trials["card"].to_numpy()).value
            own = ratio(said, trials["recalled"].to_numpy(), trials["card"].to_numpy())
            row = {"model": model["model"], **common, "truth": truth, "se": own.se}
            row |= {"covered": own.low <= truth <= own.high}
            row |= {"deviation": (own.value - truth) / own.se}
            rows.append(row | {"refused": model["verdict"].startswith("refused")})
    return pd.DataFrame(rows)


def coverage_table(collections: pd.DataFrame) -> pd.DataFrame:
    """Return how often intervals contain what the truth gives, by model and rule."""
    every = pd.concat([collections, collections.assign(**{"drawn by": ALL})])
    columns = {
        "collections": ("covered", "size"),
        "covered": ("covered", "mean"),
        "ratio of the truth": ("truth", "median"),
        "median se": ("se", "median"),
    }
    return every.groupby(["model", "drawn by"]).agg(**columns).reset_index()


def habits_table(simulations: int, cards: int, name: str) -> pd.DataFrame:
    """Return what habits that might deceive the lottery do to the ratio of a model."""
    rows = []
    for habit in ("", *HABITS):
        every = of_collections(simulations, cards, [name], rules=[Rule.V3], habit=habit)
        away = every["deviation"].to_numpy()
        rows.append(
            {
                "somebody who": habit or "has none of these habits",
                "collections": simulations,
                "refused": 1 - (~every["refused"]).sum() / simulations,
                "covered": every["covered"].mean(),
                "mean deviation, se": away.mean(),
                "± (of the mean)": away.std() / np.sqrt(len(away)),
                "attrition, t": every["attrition"].median(),
                "imbalance above 4": (every["imbalance"] > 4).mean(),
            }
        )
    return pd.DataFrame(rows)


def of_own(
    collections: Sequence[AnkiCollection], options: LotteryOptions
) -> tuple[dict[str, pd.DataFrame], dict[str, Figure], Lottery]:
    """Study collections; return tables, figures, and the lottery."""
    lottery = play(collections, {name: se.algorithm(name) for name in options.algo})
    tables = {"models": models_table(lottery), "draws": draws_table(lottery)}
    tables["answers"] = answers_table(lottery)
    if not options.page:  # too long for it
        tables["months"] = lottery.months
    figures = {}
    if len(lottery.draws):
        title = ", ".join(each.name for each in collections[:3])
        figures["lottery"] = draw(lottery.trials, tables["models"], title)
    return {name: table for name, table in tables.items() if len(table)}, figures, lottery


def draw(trials: pd.DataFrame, models: pd.DataFrame, title: str) -> Figure:
    """Draw the change of recall against the draw, and the ratios of models beside their log loss.

    `models` has the columns of `verdicts.models_table`.
    """
    models = models[models["reviews"] > 0]
    height = 3.4 + 0.12 * max(len(models) - 4, 0)
    with panels(9.2, height, 2, title, width_ratios=(1, 1.15)) as (figure, (left, right)):
        recalled = trials["recalled"].to_numpy()
        residual = within(recalled, trials["cell"].to_numpy())
        draw_changes(left, trials["z"].to_numpy(), residual, slope(trials, recalled), models)
        draw_ratios(right, models)
    return figure


def draw_changes(
    axes: Axes, z: np.ndarray, residual: np.ndarray, line: Effect, models: pd.DataFrame
) -> None:
    """Draw means of groups of draws, the estimated line with its 95 % band, and those of models."""
    groups = np.array_split(np.argsort(z, kind="stable"), GROUPS)
    x, y, error = np.array(
        [
            (z[own].mean(), 100 * residual[own].mean(), 100 * residual[own].std() / len(own) ** 0.5)
            for own in groups
            if len(own) > 1
        ]
    ).T
    ends = np.array([x.min(), 0, x.max()])
    low, high = (100 * (line.value + side * 1.96 * line.se) * ends for side in (-1, 1))
    axes.fill_between(ends, low, high, color=MUTED, alpha=0.18, lw=0)
    axes.plot(ends, 100 * line.value * ends, color=MUTED, lw=1, label="by lot, 95 % band")
    axes.errorbar(x, y, 1.96 * error, fmt="o", color=INK, ms=4, lw=1)
    for number, model in enumerate(models.to_dict("records")):
        style = {"color": COLOURS[number % 4], "ls": DASHES[number // 4 % 4], "lw": 1.6}
        axes.plot(ends, 100 * model["slope"] * ends, label=model["model"], **style)
    axes.axhline(0, color=MUTED, lw=0.6)
    axes.set_xlabel("interval drawn, against its mean (ln days)")
    axes.set_ylabel("change of recall, points")
    axes.legend(fontsize=SMALL - 0.5, loc="lower left")


def draw_ratios(axes: Axes, models: pd.DataFrame) -> None:
    """Draw the ratio of each model with its interval, and its log loss at the right."""
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "fontsize": SMALL}
    most = MOST + max([2.0, *(models["ratio"].dropna() + 0.4)])
    for place, model in enumerate(models[::-1].to_dict("records")):
        axes.text(1.01, place, f"{model['log loss']:.4f}", va="center", **beside)
        if np.isfinite(model["ratio"]):
            low, high = np.clip([model["low"], model["high"]], LEAST, most)
            axes.hlines(place, low, high, color=INK, lw=1.2)
            axes.plot(model["ratio"], place, "o", color=BLUE, ms=6)
    axes.axvline(1, color=MUTED, lw=0.8)
    axes.set_xlim(LEAST, most)
    axes.set_yticks(range(len(models)), models["model"][::-1])
    axes.set_ylim(-0.6, len(models) - 0.4)
    axes.set_xlabel("real change over predicted change, 95 %")
    axes.text(1.01, len(models) - 0.45, "log loss", va="bottom", color=MUTED, **beside)


ConfigStore.instance().store("lottery", LotteryOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="lottery")
def main(options: LotteryOptions) -> None:
    """Study the collections that are given; else simulate, and study one public collection."""
    tables, figures, own = {}, {}, []
    if options.data.path:
        own = [AnkiCollection(existing(path)) for path in options.data.path]
    else:
        sizes = (8, 20_000, 3, 100, 2, 100) if options.small else (200, 20_000, 120, 500, 40, 500)
        model = "hlr" if options.small else "fsrs6"
        tables["critics"], figures["critics"] = of_critics(*sizes[:2])
        tables["coverage"] = coverage_table(of_collections(*sizes[2:4], (model, "anki_sm2")))
        tables["habits"] = habits_table(*sizes[4:], model)
        if options.anki_mit and not options.small:
            own = [AnkiCollection(existing(options.anki_mit) / COLLECTION, user="anki-mit")]
    if not own:
        write("lottery", options, tables, figures, FORMATS)
        return
    more, drawing, lottery = of_own(own, options)
    write("lottery", options, tables | more, figures | drawing, FORMATS)
    for what, reason in {**lottery.refused, **lottery.missing}.items():
        print(f"{what}: {reason}")
    if lottery.failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
