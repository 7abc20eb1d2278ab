"""What holds of every figure: ugly inputs, labels, files, and no trace in matplotlib."""

import matplotlib
import pytest
from drawings import CONTRIBUTIONS, FIGURES, columns_of, others, simulated, told, ugly, user_scores
from matplotlib.figure import Figure
from matplotlib.text import Text

from srs_eval import plots
from srs_eval.metrics.tally import tally


def test_figures_have_what_is_written_down_for_review(golden_text):
    usual = {name: make(simulated(3000)) for name, make in FIGURES.items()}
    figures = {**usual, **others()}
    golden_text("figures", "\n".join(f"# {name}\n{told(made)}" for name, made in figures.items()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(ugly()))
def test_figures_draw_ugly_predictions_without_a_warning(kind):
    for name in ("calibration", "corp", "roc", "bins"):
        FIGURES[name](ugly()[kind]).draw_without_rendering()


def test_titles_are_taken_literally_and_cut_to_fit():
    figure = plots.calibration_figure(simulated(100), title="a_1 on $x$ " + 80 * "long")
    figure.draw_without_rendering()
    (title,) = [t for t in figure.findobj(Text) if t.get_text().startswith("calibration:")]
    assert title.get_text().startswith("calibration: a_1 on $x$ long")
    assert title.get_text().endswith("…")
    assert title.get_window_extent().x1 < figure.bbox.x1


def test_functions_on_axes_touch_nothing_else():
    some, scores = simulated(300), user_scores()
    arguments = {
        "plot_temporal": (some.curves,),
        "plot_user_scores": (scores,),
        "plot_contributions": (CONTRIBUTIONS,),
        "plot_versus": (scores, scores[::-1]),
        "plot_bins": columns_of(some),
    }
    with matplotlib.rc_context({"axes.facecolor": "pink"}):
        before = dict(matplotlib.rcParams)
        for name in (name for name in vars(plots) if name.startswith("plot_")):
            axes, other = Figure().subplots(1, 2)
            getattr(plots, name)(axes, *arguments.get(name, (some.p, some.recalled)))
            assert dict(matplotlib.rcParams) == before, name
            assert not other.has_data(), name
    assert matplotlib._pylab_helpers.Gcf.figs == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_equal_inputs_give_equal_files_and_leave_matplotlib_as_it_was(name, tmp_path):
    """A tally is as good as predictions."""
    some = simulated(300)
    again = tally(some.p, some.recalled) if name in ("calibration", "corp", "roc") else some
    before = dict(matplotlib.rcParams)
    files = [
        plots.save_figure(FIGURES[name](given), tmp_path / folder, name)
        for folder, given in (("once", some), ("again", again))
    ]
    assert dict(matplotlib.rcParams) == before
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()
