"""Command lines with a mistake: a suggestion, exit status 2, and nothing is run."""

from __future__ import annotations

import pytest
from cases import rest_nightly
from commands import Here

from srs_eval.config import suggestions
from srs_eval.config.settings import mistakes
from srs_eval.tuning.options import SearchOptions

# A command line, and what its error must contain: the argument, its place, the suggestion.
MISTAKES = [
    ("algo=lsmt", "algo=lsmt", "'lstm'", "moving_avg"),
    ("algoo=lstm", "'algoo'", "'algo'"),
    ("sed=3", "'sed'", "'seed'"),
    ("algo=gru algo.epoch=3", "'algo.epoch'", "'algo.epochs'"),
    ("panel.metrics.ece.bin=3", "'panel.metrics.ece.bins'"),
    ("algo.hidden=3", "algo=fsrs6", "'hidden'", "gru,", "lstm_published"),
    ("data.user=3", "data=synthetic", "'user'", "anki"),
    ("seed=abc", "seed=abc", "whole number"),
    ("figures=maybe", "figures=maybe", "true or false"),
    ("algo=constant algo.p=much", "algo.p='much'", "a number"),
    ("+nonsense=1", "'nonsense'"),
    ("algo.nonsense=1", "'algo.nonsense'"),
    ("~algo", "~algo", "fsrs6"),
    ("compute=null", "compute=null", "serial"),
    ("~panel.metrics.eec", "'panel.metrics.ece'"),
    ("algo", "algo=OPTION", " constant,"),
    ("fsrs6", "fsrs6", "KEY=VALUE"),
    ("tags.who=me", "+tags.who=me"),
    ("algo.parameters=[1", "algo.parameters=[1", "bracket"),
    ("algo=[]", "algo=…"),
    ("algo=avg,sm2", "algo=avg,sm2", "-m"),
    ("-m algo=avg,smm2", "algo=smm2", "'sm2'"),
    ("-m algo=avg,constant algo.p=0.8", "algo=avg", "'p'", "constant"),
    ("experiment=quick", "experiment=quick", "'quick_start'"),
    ("workers=2", "'workers'", "'compute.workers'", "compute=processes", "'hydra.sweeper.workers'"),
    ("wrokers=2", "'wrokers'", "'compute.workers'"),
    ("users=3", "'users'", "'data.users'?"),
    ("data=csv card=item", "'card'", "'data.columns.card'?"),
    ("columns.card=item", "'columns.card'", "'data.columns.card'", "data=csv"),
    ("dir=out", "'hydra.run.dir'"),
    ("-m algo=hlr sweep=optuna_lstm", "sweep=optuna_lstm", "of algo=lstm", "algo=hlr", "'hidden'"),
    ("-m sweep=optuna_lstm", "of algo=lstm", "algo=fsrs6"),
    ("-m algo=lstm,avg sweep=lstm_size", "of algo=lstm", "algo=avg"),
    ("-m algo=avg sweep=optuna_fsrs", "algo=avg", "'prior_weight'", "algo=fsrs6"),
    ("--config-dir=mine -m algo=avg sweep=chance", "sweep=chance", "of algo=constant or", "'p'"),
    ("--hlep", "--hlep", "--help?"),
    ("algo=avg --config-dir nowhere", "nowhere"),
    ("algo=lsmt dat.users=3 seed=x data.usres=4", "'lstm'", "'data'", "seed=x", "'data.users'"),
    ("tracking=mlfow panel=fulll compute=serail", "'mlflow'", "'full'", "'serial'"),
    ("--config-dir=mine algo=eigthy", "'eighty'"),
    ("--config-dir=mine algo=eighty algo.q=1", "'algo.q'", "there are p"),
    ("--config-dir=mine algo=empty", "algo=empty", "_target_"),
    ("--config-dir=mine algo=broken", "broken.yaml"),
    # Composed and built before they are refused: slower.
    ("data.users=abc", "data.users='abc'", "whole number"),
    ("algo=hlr algo.fit=s0", "fit=s0", "newton, lbfgs, reference, default"),
    ("data=csv", "data=csv", "data.path=…"),
    ("data=anki", "data=anki", "data.path=…"),
    ("+algo.nonsense=1", "Fsrs6", "'nonsense'", "fit, parameters"),
    ("seed=-1 curves_per_user=-2", "seed=-1, curves_per_user=-2", "whole number"),
    ("algo=constant algo.p=7 data.users=0 tracking=none", "p=7", "data.users=0"),
    ("--config-dir=mine algo=untargeted", "algo=untargeted", "_target_"),
    ("--config-dir=mine algo=nowhere", "algo=nowhere", "nowhere.There", "'nowhere'"),
    ("--config-dir=mine algo=misnamed", "algo=misnamed", "sm2.Sm3"),
]
OWN = {
    "eighty": "_target_: srs_eval.algorithms.baselines.Constant\np: 0.8\n",
    "empty": "",
    "untargeted": "epochs: 3\n",
    "nowhere": "_target_: nowhere.There\n",
    "misnamed": "_target_: srs_eval.algorithms.schedulers.sm2.Sm3\n",
    "broken": "a: [\n",
}
CHANCE = "# @package _global_\nhydra:\n  sweeper:\n    params:\n      algo.p: 0.8,0.9\n"


@pytest.mark.parametrize(
    ("line", "parts"), rest_nightly([(line, parts) for line, *parts in MISTAKES], 42)
)
def test_a_mistake_is_refused_in_a_few_lines_before_anything_runs(
    here: Here, line: str, parts: list[str]
) -> None:
    own = here.folder / "mine" / "algo"
    own.mkdir(parents=True)
    for name, text in OWN.items():
        if name != "broken" or name in line:
            (own / f"{name}.yaml").write_text(text, encoding="utf-8")
    (here.folder / "mine" / "sweep").mkdir()
    (here.folder / "mine" / "sweep" / "chance.yaml").write_text(CHANCE, encoding="utf-8")
    done = here(*line.split(), "hydra.run.dir=out", "hydra.sweep.dir=out")
    assert done.status == 2
    assert [part for part in parts if part not in done.err] == []
    assert "Traceback" not in done.text
    assert "HYDRA_FULL_ERROR" not in done.text
    assert all(len(line) < 200 for line in done.err.splitlines())
    assert not list(here.folder.rglob("summary.json"))
    assert not (here.folder / "mlflow.db").exists()


def test_a_users_own_option_is_described(here: Here) -> None:
    (here.folder / "mine" / "algo").mkdir(parents=True)
    (here.folder / "mine" / "algo" / "eighty.yaml").write_text(OWN["eighty"], encoding="utf-8")
    assert "p=0.8" in here("algo=?", "--config-dir=mine").out


@pytest.mark.parametrize(
    "line",
    [
        "sweep=optuna_lstm algo=lstm",
        "sweep=optuna_fsrs",
        "sweep=lstm_size algo=lstm",
        "sweep=optuna_trees algo=boosted_trees_monotone",
        "sweep=optuna_lstm experiment=quick_start",
        "sweep=optuna_lstm hydra.sweeper.params={algo.p:choice(1,2)}",
        "sweep=null",
    ],
)
def test_a_sweep_over_options_that_the_algorithm_has_is_no_mistake(line: str) -> None:
    assert mistakes(line.split()) == []


def test_what_a_search_is_known_to_have_is_what_it_has() -> None:
    assert set(suggestions._OF_A_SEARCH) == set(SearchOptions.__dataclass_fields__) - {
        "seed",  # there is one for runs too
        "may_change",
    }
