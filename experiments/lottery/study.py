"""What an interval does to recall: Anki's fuzz, read as a randomised experiment."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from drawn_intervals import (
    HABITS,
    Critics,
    associational,
    critics_case,
    honest,
    truth,
    write_collection,
)
from findings import findings
from matplotlib.figure import Figure
from review_logs import given_path
from srs_eval.run.study import Findings

from srs_eval.api.inputs import algorithm, source
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.draws.estimate import Effect, within
from srs_eval.draws.report import (
    answer,
    count_records,
    draw_records,
    figure,
    model_records,
    month_records,
    sentences,
)
from srs_eval.draws.result import Lottery, found_in, log_loss, slope_of
from srs_eval.draws.rules import Rule
from srs_eval.draws.study import collect
from srs_eval.draws.trials import Predicted, ratio
from srs_eval.errors import ConfigError
from srs_eval.nouns import Source
from srs_eval.plots.lottery_plot import ModelInLottery, lottery_figure

ASSOCIATIONAL, HONEST, TRUTH = "associational", "honest curve", "the truth"
MODELS: Mapping[str, Callable[[Critics, Critics], Predicted]] = {
    ASSOCIATIONAL: associational,
    HONEST: lambda _, test: honest(test),
    TRUTH: lambda _, test: truth(test),
}
_COLLECTION = "collection.anki21"
_LEVEL = 0.95
_ALL = "any rule"
_FORMATS = {
    **dict.fromkeys(("rejected", "covered", "matched"), ".1%"),
    **dict.fromkeys(("imbalance above 4", "refused"), ".0%"),
    **dict.fromkeys(("ratio", "se by user", "modifier", "± (of the mean)"), ".2f"),
    **{"se": ".3f", "t": ".1f", "attrition, t": ".1f", "mean deviation, se": "+.2f"},
    "users": ".0f",
}


def of_critics(simulations: int, n: int, seed: int = 2026) -> tuple[pd.DataFrame, Figure]:
    """Simulate the critics' case; return how each model fares, and the figure of the last."""
    rng = np.random.default_rng(seed)
    rows, slopes, naive = [], [], []
    for _ in range(simulations):
        train, test = critics_case(rng, n), critics_case(rng, n)
        trials = test.trials
        said = {name: predict(train, test) for name, predict in MODELS.items()}
        last = {}
        for name, model in said.items():
            loss = log_loss(model.actual, trials.recalled)
            one = ratio(trials, model, trials.recalled, trials.card)
            last[name] = loss, one
            row = {"model": name, "log loss": loss, "ratio": one.value, "se": one.se}
            rows.append(row | {"rejected": one.p_value(1) < 1 - _LEVEL})
        slopes.append(slope_of(trials, trials.recalled).value)
        log_days = np.log(trials.elapsed) - np.log(trials.elapsed).mean()
        naive.append(float(log_days @ trials.recalled / (log_days @ log_days)))
    ways = {"log loss": lambda own: np.mean(own.to_numpy()), "ratio": "median", "se": "median"}
    ways["rejected"] = "mean"
    table = pd.DataFrame(rows).groupby("model", sort=False).agg(ways).reset_index()
    table.attrs = {"slope": float(np.mean(slopes)), "naive": float(np.mean(naive))}
    return table, _figure_of_critics(test, said, last)


def _figure_of_critics(
    test: Critics, said: Mapping[str, Predicted], last: Mapping[str, tuple[float, Effect]]
) -> Figure:
    trials = test.trials
    slope = slope_of(trials, trials.recalled)
    shown = [
        ModelInLottery(
            name,
            slope_of(trials, said[name].actual).value,
            one.value,
            *one.interval(_LEVEL),
            loss,
        )
        for name, (loss, one) in last.items()
    ]
    residual = within(trials.recalled, trials.cell)
    title = f"the critics' case, simulated: {len(trials):,} reviews"
    return lottery_figure(trials.log_drawn, residual, (slope.value, slope.se), shown, title=title)


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
    built = {name: algorithm(name) for name in algorithms}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(simulations):
            rule = rules[number % len(rules)]
            path, rng = Path(folder) / f"{number}.anki2", np.random.default_rng(number)
            true = write_collection(path, rng, cards=cards, rule=rule, habit=habit)
            one = AnkiCollection(path)
            lottery = found_in(collect([one], built))
            log = one.read_with_table(one.users()[0])
            path.unlink()
            if lottery.draws is None:
                continue
            trials = lottery.collected.trials()
            recall = true[log.rows[np.searchsorted(log.reviews.row, trials.row)]]
            balance = [abs(each.value / each.se) for each in lottery.draws.balance.values()]
            for model in lottery.models:
                said = lottery.collected.predictions(model.name)
                truth = ratio(trials, said, recall, trials.card).value
                low, high = model.ratio.interval(_LEVEL)
                row = {"model": model.name, "drawn by": str(rule), "truth": truth}
                row |= {"covered": low <= truth <= high, "se": model.ratio.se}
                row |= {"deviation": (model.ratio.value - truth) / model.ratio.se}
                row |= {"attrition": lottery.draws.attrition_t, "imbalance": max(balance)}
                rows.append(row | {"refused": bool(model.refused)})
    return pd.DataFrame(rows)


def coverage_table(found: pd.DataFrame) -> pd.DataFrame:
    """Return how often intervals contain what the truth gives, by model and rule."""
    every = pd.concat([found, found.assign(**{"drawn by": _ALL})])
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
    sources: Sequence[Source], options: SimpleNamespace
) -> tuple[dict[str, pd.DataFrame], dict[str, Figure], Lottery, list[str]]:
    """Study collections; return tables, figures, what was found, and sentences on it."""
    names = [options.algo] if isinstance(options.algo, str) else list(options.algo)
    built = {name: algorithm(name) for name in names}
    lottery = found_in(collect(sources, built))
    tables = {
        "models": pd.DataFrame(model_records(lottery)),
        "draws": pd.DataFrame(draw_records(lottery)),
        "answers": pd.DataFrame(count_records(lottery)),
        "months": pd.DataFrame(month_records(lottery)),
    }
    tables = {name: table for name, table in tables.items() if len(table)}
    title = ", ".join(each.name for each in sources[:3])
    figures = {} if lottery.draws is None else {"lottery": figure(lottery, title=title)}
    learned = sentences(lottery)
    return tables, figures, lottery, learned


def run(options: SimpleNamespace) -> Findings:
    """Study the collections that are given; else simulate, and study one public collection."""
    if options.path is not None:
        paths = [options.path] if isinstance(options.path, str) else [*map(str, options.path)]
        gone = [path for path in paths if not (path.isidentifier() or Path(path).exists())]
        if gone:
            raise ConfigError(*(f"data.path={path}: no such file or folder" for path in gone))
        tables, figures, lottery, learned = of_own([source(path) for path in paths], options)
        metrics = {f"ratio_{model.name}": model.ratio.value for model in lottery.models}
        failed = lottery.collected.failed
        return Findings(
            answer(lottery), learned, tables, figures, metrics, failed=failed, formats=_FORMATS
        )
    sizes = (8, 20_000, 3, 100, 2, 100) if options.small else (200, 20_000, 120, 500, 40, 500)
    critics, drawing = of_critics(*sizes[:2])
    model = "hlr" if options.small else "fsrs6"
    coverage = coverage_table(of_collections(*sizes[2:4], (model, "anki_sm2")))
    habits = habits_table(*sizes[4:], model)
    tables = {"critics": critics, "coverage": coverage, "habits": habits}
    figures = {"critics": drawing}
    left_out, failed, of_anki = [], [], []
    folder = None if options.small else given_path(options, "anki_mit")
    if folder is None:
        left_out.append("study.anki_mit (no path given)")
    else:
        own = AnkiCollection(folder / _COLLECTION, user="anki-mit")
        more, drawn, lottery, learned = of_own([own], options)
        more.pop("months", None)  # too long for a page
        tables, figures = {**tables, **more}, {**figures, **drawn}
        of_anki = [f"anki-mit: {answer(lottery)}", *learned]
        failed += lottery.collected.failed
    by_model = critics.set_index("model")
    words = {
        **critics.attrs,
        "associational": by_model.loc[ASSOCIATIONAL],
        "honest": by_model.loc[HONEST],
        "truth": by_model.loc[TRUTH],
        "covered": coverage[coverage["drawn by"] == _ALL],
        "of_own": of_anki,
    }
    return findings(
        "lottery",
        tables,
        figures,
        words,
        metrics={"size": float(by_model.loc[TRUTH, "rejected"])},
        left_out=left_out,
        failed=failed,
        formats=_FORMATS,
    )
