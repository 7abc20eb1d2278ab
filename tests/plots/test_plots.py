"""What holds of every figure: ugly inputs, labels, files, and no trace in matplotlib."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from pairs import predicted

from srs_eval import plots
from srs_eval.metrics.recall_over_time import ELAPSED
from srs_eval.metrics.sums import add_up
from srs_eval.metrics.tally import tally
from srs_eval.nouns import Contribution, Curves, Predictions


def simulated(n: int, *, users: int = 1, curves: int = 40) -> Predictions:
    """Calibrated predictions of power-law forgetting, with facts and curves."""
    rng = np.random.default_rng(n)
    stability = np.exp(rng.normal(2.5, 1.5, n))
    elapsed = np.maximum(1, np.round(stability * np.exp(rng.normal(0, 0.5, n))))
    p = (1 + 19 / 81 * elapsed / stability) ** -0.5
    row = np.sort(rng.choice(n, min(curves, n), replace=False))
    times = np.tile(np.geomspace(1, 300, 16), (len(row), 1))
    user = np.arange(n) % users
    zeros = np.zeros(n, np.int64)
    return predicted(
        p.astype(np.float32),
        rng.uniform(size=n) < p,
        users=tuple(range(users)),
        user=user,
        elapsed_days=elapsed - (rng.uniform(size=n) < 0.02) * elapsed,
        nth_review=rng.integers(1, 20, n),
        lapses=zeros,
        curves=Curves(
            user=user[row],
            fold=zeros[row],
            row=row,
            elapsed=times,
            weight=np.full(times.shape, 1 / 16),
            p=(1 + 19 / 81 * times / stability[row, None]) ** -0.5,
        ),
    )


def ugly() -> dict[str, Predictions]:
    rng = np.random.default_rng(7)
    p = rng.beta(9, 1.2, 1000)
    recalled = rng.uniform(size=1000) < p
    return {
        "none": predicted(np.zeros(0), []),
        "one": predicted([0.9], [True]),
        "two": predicted([0.9, 0.2], [True, False]),
        "thirty": predicted(p[:30], recalled[:30]),
        "constant": predicted(np.full(1000, 0.88), recalled),
        "five levels": predicted(rng.choice([0.86, 0.88, 0.885, 0.89, 0.9], 1000), recalled),
        "all recalled": predicted(p, np.ones(1000)),
        "all forgotten": predicted(p, np.zeros(1000)),
        "certain and wrong": predicted(1.0 - recalled, recalled),
        "certain and right": predicted(1.0 * recalled, recalled),
        "some exactly 0 and 1": predicted(np.round(p, 1) * (p > 0.5), recalled),
        "single precision": predicted(p.astype(np.float32), recalled),
        "all low": predicted(rng.beta(1, 20, 1000), recalled),
        "crowded at one": predicted(1 - 1e-9 * p, recalled),
    }


def user_scores(users: int = 12) -> dict[str, np.ndarray]:
    return {"log_loss": np.exp(np.random.default_rng(0).normal(-1, 0.3, users))}


def versus(users: int = 12):
    first = user_scores(users)["log_loss"]
    second = first * np.random.default_rng(1).uniform(0.9, 1.2, users)
    return plots.versus_figure(first, second, names=("fsrs6", "hlr"), better="lower")


def forgetting(predictions):
    totals = add_up([ELAPSED], predictions)[0].values[0]
    nth = plots.nth_review_of_curves(predictions)
    return plots.forgetting_figure(totals, predictions.curves, nth_review=nth)


FIGURES = {
    "calibration": plots.calibration_figure,
    "corp": plots.corp_figure,
    "bins": plots.bins_figure,
    "roc": plots.roc_figure,
    "forgetting": forgetting,
    "versus": lambda _: versus(),
    "users": lambda _: plots.users_figure(user_scores(), better={"log_loss": "lower"}),
}


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(ugly()))
def test_figures_draw_ugly_predictions_without_a_warning(kind):
    predictions = ugly()[kind]
    for name in ("calibration", "corp", "roc", "bins"):
        figure = FIGURES[name](predictions)
        figure.draw_without_rendering()
        assert words(figure)


@pytest.mark.slow
def test_titles_are_taken_literally_and_cut_to_fit():
    figure = plots.calibration_figure(simulated(100), title="a_1 on $x$ " + 80 * "long")
    figure.draw_without_rendering()
    (title,) = [t for t in figure.findobj(Text) if t.get_text().startswith("calibration:")]
    assert title.get_text().startswith("calibration: a_1 on $x$ long")
    assert title.get_text().endswith("…")
    assert title.get_window_extent().x1 < figure.bbox.x1


@pytest.mark.parametrize("name", [name for name in vars(plots) if name.startswith("plot_")])
def test_functions_on_axes_touch_nothing_else(name):
    some = simulated(300)
    scores = user_scores()["log_loss"]
    facts = (some.elapsed_days, some.nth_review, some.lapses)
    arguments = {
        "plot_temporal": (some.curves,),
        "plot_user_scores": (scores,),
        "plot_contributions": ([[Contribution("today", 0.001, 0.001)]],),
        "plot_versus": (scores, scores[::-1]),
        "plot_bins": (some.p, some.recalled, *facts),
    }
    with matplotlib.rc_context({"axes.facecolor": "pink"}):
        before = dict(matplotlib.rcParams)
        figure = Figure()
        axes, other = figure.subplots(1, 2)
        getattr(plots, name)(axes, *arguments.get(name, (some.p, some.recalled)))
        assert dict(matplotlib.rcParams) == before
    assert not other.has_data()
    assert matplotlib._pylab_helpers.Gcf.figs == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["calibration", "corp", "roc"])
def test_a_tally_is_as_good_as_predictions(name, tmp_path):
    some = simulated(300)
    files = [
        plots.save_figure(FIGURES[name](given), tmp_path, kind, formats=["svg"])[0].read_bytes()
        for kind, given in (("whole", some), ("tally", tally(some.p, some.recalled)))
    ]
    assert files[0] == files[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_equal_inputs_give_equal_files_and_leave_matplotlib_as_it_was(name, tmp_path):
    predictions = simulated(300)
    before = dict(matplotlib.rcParams)
    for folder in ("once", "again"):
        plots.save_figure(FIGURES[name](predictions), tmp_path / folder, name)
    assert dict(matplotlib.rcParams) == before
    for ending in ("svg", "png"):
        once, again = ((tmp_path / f / f"{name}.{ending}").read_bytes() for f in ("once", "again"))
        assert once == again
