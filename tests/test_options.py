"""Every option of the command: composed, built, as its class says, and planned as a job."""

import copy
import inspect
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from cases import rest_nightly
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import get_object
from omegaconf import OmegaConf

from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.current import DEFAULTS, CurrentParameters
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.sessions.forecast import Forecast
from srs_eval.algorithms.sessions.mixture import Mixture
from srs_eval.config import building, option_files, settings
from srs_eval.config.building import build, resolved
from srs_eval.config.hydra_section import Loader, composed
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.metrics.panel import default_panel
from srs_eval.run.description import described
from srs_eval.run.plan import make_job

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"
OPTIONS = sorted(CONF.glob("*/*.yaml"))
OVERLAYS = [path for path in OPTIONS if path.parent.name in settings.OVERLAYS]
# Algorithms have these tests among their own.
BUILT = [path for path in OPTIONS if path.parent.name in {*settings.BUILT_GROUPS} - {"algo"}]
# Presets and variants: arguments whose value here is not the default of the constructor.
PRESETS = {
    "data/py_fsrs": {"card", "rating", "time", "duration_ms"},
    "panel/full": {"bins", "kind", "part", "score", "share"},
    "panel/default": {"kind", "part", "score"},
    "panel/quick": {"pooled", "thresholds"},
}


def named(path):
    return f"{path.parent.name}/{path.stem}"


def each(paths, quick=10_000):
    return pytest.mark.parametrize("path", rest_nightly(paths, quick), ids=map(named, paths))


@cache
def compose(path):
    words = [f"{path.parent.name}={path.stem}"]
    return settings.composed(words if path.parent.name == "tracking" else [*words, "tracking=none"])


@each([*OPTIONS[::6], *(path for n, path in enumerate(OPTIONS) if n % 6)], quick=12)
def test_an_option_can_be_chosen_and_says_what_it_is_in_its_first_lines(path):
    assert set(settings.BUILT_GROUPS) <= set(compose(path))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines[:2] if line.startswith("# ") and "@package" not in line]


@each(BUILT)
def test_an_option_is_built_or_asks_for_what_it_needs(path):
    cfg, choices = compose(path), dict.fromkeys(settings.BUILT_GROUPS, "default")
    choices[path.parent.name] = path.stem
    if not OmegaConf.missing_keys(cfg):
        assert build(resolved(cfg, choices), choices)[path.parent.name] is not None
        return
    (missing,) = OmegaConf.missing_keys(cfg)
    with pytest.raises(ConfigError, match=rf"data={path.stem} needs {missing}="):
        resolved(cfg, choices)
    cfg = copy.deepcopy(cfg)
    OmegaConf.update(cfg, missing, "SELECT 1")
    cfg.data.path = "there/is/no such file"
    source = build(resolved(cfg, choices), choices)["data"]
    with pytest.raises(ReviewLogError, match="there/is/no such file: no such file"):
        source.read(source.users()[0])


def objects(node):
    """Every part of a configuration that says what it is built by."""
    for value in node.values():
        if isinstance(value, dict):
            yield from objects(value)
    if "_target_" in node:
        yield node


@each(BUILT)
def test_an_option_lists_every_argument_at_its_default(path):
    preset = PRESETS.get(named(path), set())
    option = option_files.composed_option(path.parent.name, path.stem)
    for node in objects(OmegaConf.to_container(option)):
        signature = inspect.signature(get_object(node["_target_"])).parameters
        defaults = {name: plain(argument.default) for name, argument in signature.items()}
        # Besides its own arguments, every protocol has folds of users.
        shared = {"_target_", "user_folds"}
        given = {name: value for name, value in node.items() if name not in shared}
        assert set(given) == set(defaults), node["_target_"]
        for name in set(given) - preset:
            if not isinstance(given[name], dict):
                assert given[name] == defaults[name], name


def plain(default):
    """Write a default as a file of options does."""
    if default is inspect.Parameter.empty:
        return "???"
    return list(default) if isinstance(default, tuple) else default


def test_the_top_level_is_what_the_schema_says_with_a_default_of_each_group():
    assert {path.name for path in CONF.iterdir() if path.is_dir()} == set(settings.GROUPS)
    config, defaults = OmegaConf.load(CONF / "config.yaml"), OmegaConf.structured(settings.Settings)
    scalars = set(defaults) - set(settings.BUILT_GROUPS)
    assert set(config) == scalars | {"defaults", "hydra"}
    assert {name: config[name] for name in scalars} == {name: defaults[name] for name in scalars}
    composed = settings.composed(["tracking=none"])
    assert all("_target_" in composed[group] for group in settings.BUILT_GROUPS)
    choices = dict.fromkeys(settings.GROUPS, "")
    built = build(resolved(composed, choices), choices)
    assert built["panel"].names == default_panel().names


@each(OVERLAYS)
def test_an_overlay_is_short_and_begins_with_its_command(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# @package _global_"
    words = shlex.split(lines[1].removeprefix("# "))
    assert words[:3] == ["python", "-m", "srs_eval"]
    assert f"{path.parent.name}={path.stem}" in words
    overrides = [word for word in words[3:] if not word.startswith("-")]
    assert settings.mistakes(overrides) == []


def test_the_leaderboard_lists_algorithms_that_need_no_further_package():
    content = OmegaConf.load(CONF / "experiment" / "leaderboard.yaml")
    listed = content.hydra.sweeper.params.algo.split(",")
    every = {path.stem for path in (CONF / "algo").glob("*.yaml")}
    assert len(set(listed)) == len(listed) == 27
    assert set(listed) <= every - {
        "fsrs_rs",
        "gru",
        "gru_p",
        "gru_curves",
        "lstm_curves",
        "nn17",
        "transformer",
    }


USUAL = ["algo=fsrs6", "data=synthetic", "protocol=srs_benchmark", "panel=default", "tracking=none"]


@cache
def plan_of(*words, sweep_folder=None):
    """Plan a job from the words of a command, as the command does."""
    words = [*USUAL, "compute=serial", *words]
    choices = dict(word.split("=") for word in words if word.split("=")[0] in settings.BUILT_GROUPS)
    content = building.resolved(settings.composed(words), choices)
    return make_job(building.build(content, choices), Path("out"), sweep_folder)


def test_a_plan_holds_what_was_chosen():
    words = ["algo=moving_avg", "algo.rate=0.1", "data.users=3", "seed=5", "curves_per_user=7"]
    plan = plan_of(*words, "notes=hello")
    about, experiment = plan.about, plan.experiment
    assert (about.algo, about.data, about.notes) == ("moving_avg", "synthetic", "hello")
    assert (experiment.source.count, experiment.seed, experiment.curves_per_user) == (3, 5, 7)
    assert (plan.figures, plan.resume) == (True, False)
    assert "sweep_id" not in about.tags
    flat = {
        **{"algo": "moving_avg", "algo.rate": 0.1, "data": "synthetic", "data.users": 3, "seed": 5},
        "panel.metrics.confusion.thresholds": "[0.7, 0.8, 0.9, 0.95]",
    }
    assert {name: about.params[name] for name in flat} == flat
    assert not any("_target_" in name for name in about.params)
    assert all(isinstance(v, str | int | float | bool | None) for v in about.params.values())


def test_a_label_names_the_arguments_that_are_not_at_their_defaults(transcript):
    def told_by(*words):
        about = plan_of(*words).about
        return f"{about.label}: {about.name}\n"

    transcript("labels_of_runs", told_by)


def test_the_digest_changes_with_every_setting_that_can_move_a_number_alone(transcript):
    def told_by(word):
        changed, usual = (plan.about.tags["config_hash"] for plan in (plan_of(word), plan_of()))
        return "moves numbers\n" if changed != usual else "moves none\n"

    transcript("digests_of_settings", told_by)


def test_runs_of_a_sweep_share_a_name_that_other_sweeps_do_not_have():
    places = [Path("/a/today/10-00_sweep")] * 2 + [Path("/a/yesterday/10-00_sweep")]
    plans = [plan_of("algo=avg", sweep_folder=place) for place in places]
    first, same, other = (plan.about.tags["sweep_id"] for plan in plans)
    assert first == same != other
    assert first.startswith("10-00_sweep-")


def test_a_path_is_taken_as_it_was_typed():
    for path in ("a b.csv", "C:[1].csv", "log.csv", "für, 語 = 'x'\\"):
        quoted = settings.literally(f"data.path={path}", is_sweep=False)
        assert settings.composed([*USUAL, "data=csv", quoted]).data.path == path
        word = settings.literally(f"hydra.sweep.dir={path}", is_sweep=True)
        read = OverridesParser.create().parse_override(word)
        assert not read.is_sweep_override()
        assert getattr(read.value(), "text", read.value()) == path
    for several in ("data.path=a.csv,b.csv", "algo=a,b"):
        assert settings.literally(several, is_sweep=True) == several


@pytest.mark.parametrize(
    ("typed", "ratings"),
    [
        ("{0: 1, x: 2, true: 3}", {"0": 1, "x": 2, "True": 3}),
        ("{Nochmal: 1, Für gut: 3}", {"Nochmal": 1, "Für gut": 3}),
        ("""{"no, never": 1, 'a:b': 2, "it's \\"": 3}""", {"no, never": 1, "a:b": 2, "it's \"": 3}),
        ('[["ok!",3]]', {"ok!": 3}),
    ],
)
def test_any_word_can_be_given_a_rating(typed, ratings):
    word = settings.literally(f"data.ratings={typed}", is_sweep=False)
    plan = plan_of("data=csv", "data.path=a.csv", word)
    assert plan.experiment.source.options.ratings == ratings
    if word.startswith("data.ratings={"):
        assert plan.about.params["data.ratings.0"] == 1


def test_a_job_is_composed_once_and_jobs_of_the_same_words_share_nothing():
    settings.register_schema()
    loader, words = Loader(), ["algo=avg"]
    sweep = composed(loader, ["algo=avg,avg", "tracking=none"])
    checked = loader.load_sweep_config(sweep, words)
    begun = [loader.load_sweep_config(sweep, words)]
    assert begun[0] is checked
    for _ in range(3):
        OmegaConf.set_readonly(conf=begun[-1].hydra, value=True)  # as Hydra does when a job begins
        begun.append(loader.load_sweep_config(sweep, words))
        assert not OmegaConf.is_readonly(begun[-1].hydra)
    assert len(set(map(id, begun))) == len(begun)
    assert all(job.algo == checked.algo for job in begun)


def test_an_algorithm_inside_of_another_is_named_as_on_the_command_line():
    def inside(*words):
        return building.resolved(settings.composed(words), {})["algo"]

    def target(path):
        return {"_target_": f"srs_eval.algorithms.{path}"}

    assert inside("algo=per_group", "algo.base=fsrs6") == inside("algo=per_group")
    assert inside("algo=per_group", "algo.base=hlr")["base"] == target("half_life.hlr.Hlr")
    one = inside("algo=mixture", "algo.fsrs7=fsrs45_default")["fsrs7"]
    assert one == target("fsrs.fsrs45.Fsrs45") | {"fit": "default"}
    base = {"base": target("fsrs.fsrs7.Fsrs7"), "extra": {}, "prior": {}}
    inner = inside("algo=per_group", "algo.base=session_filter")["base"]
    assert inner == target("sessions.session_filter.SessionFilter") | base


def test_parameters_that_were_read_from_the_data_are_settings_of_a_run():
    choices = dict(word.split("=") for word in [*USUAL, "compute=serial"])
    inputs = building.build(building.resolved(settings.composed(USUAL), choices), choices)

    def stamp(parameters):
        algo = replace(inputs.groups["algo"], built=CurrentParameters({1: parameters}))
        return described(replace(inputs, groups={**inputs.groups, "algo": algo})).stamp

    assert stamp(DEFAULTS) == stamp(DEFAULTS) != stamp((1.0, *DEFAULTS[1:]))


def test_what_is_made_of_fsrs_was_made_for_whole_days_too():
    base = Fsrs6()
    for made in (CurrentParameters(), PerGroup(base), Forecast(base), Mixture(base)):
        assert made.for_whole_days
    assert not Forecast(Fsrs7()).for_whole_days
