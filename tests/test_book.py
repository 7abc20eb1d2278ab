"""The book of experiments: pages in one form, and tables that the programs reproduce."""

import platform
import re
from pathlib import Path

import pytest
from cases import rest_nightly
from commands import apart

from srs_eval.errors import ConfigError

NUMBER = re.compile(r"[-+]?\d[\d,.]*")
BOOK = Path(__file__).parents[1] / "experiments"
# The quickest study first: its small version is run every day.
QUICKEST = "noise_floors"
NAMES = sorted(
    {file.parent.name for file in BOOK.glob("*/study.py")}, key=lambda n: (n != QUICKEST, n)
)
# Small logs have several minima, and the last bits decide which of them a fit finds: the tables
# are of one level of arithmetic, which all but very old x86 processors have.
ONE_ARITHMETIC = {"SRS_EVAL_CPU": "x86-64-v3"} if platform.machine() == "x86_64" else {}


def assert_about_equal(made, committed):
    """Compare tables, also the numbers within texts such as intervals.

    They have three or four digits, so that a number on the edge may be rounded to either side.
    """
    import pandas as pd

    texts = [name for name in made if not pd.api.types.is_numeric_dtype(made[name])]
    for column in texts:
        both = (each[column].fillna("").astype(str) for each in (made, committed))
        pairs = zip(*both, strict=True)
        for one, other in pairs:
            assert NUMBER.sub("", one) == NUMBER.sub("", other)
            numbers = ([float(n.replace(",", "")) for n in NUMBER.findall(t)] for t in (one, other))
            assert next(numbers) == pytest.approx(next(numbers), rel=0.01, abs=3e-4)
    pd.testing.assert_frame_equal(
        made.drop(columns=texts), committed.drop(columns=texts), rtol=1e-3, atol=2e-4
    )


@pytest.mark.parametrize("name", rest_nightly(NAMES))
def test_the_small_version_of_a_study_makes_the_tables_that_are_committed(name, tmp_path):
    import pandas as pd

    words = (f"experiment={name}", "study.small=true", "tracking=none", "hydra.run.dir=out")
    done = apart(tmp_path, *words, env=ONE_ARITHMETIC, timeout=600)
    assert done.status == 0, done.text
    committed = {file.name: file for file in (BOOK / name / "small").glob("*.csv")}
    made = {file.name: file for file in (tmp_path / "out" / "tables").glob("*.csv")}
    assert set(made) == set(committed) != set()
    for file in committed:
        assert_about_equal(pd.read_csv(made[file]), pd.read_csv(committed[file]))
    assert list((tmp_path / "out" / "figures").glob("*.png"))
    assert "\n- " in done.out


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_study_has_the_form_of_the_book(name):
    page = (BOOK / name / "README.md").read_text(encoding="utf-8")
    parts = ["**Question.**", "**Command.**", "![", "**What was learned.**"]
    parts += ["**What it does not show.**", f"python -m srs_eval -m experiment={name}"]
    assert [part for part in parts if part not in page] == []
    filled = re.findall(r"<!-- (\w+) -->\s*(?!\s|<)[\s\S]*?<!-- /\1 -->", page)
    assert {"answer", "learned"} <= set(filled) == set(re.findall(r"<!-- (\w+) -->", page))
    pictures = re.findall(r"!\[.*?\]\((\S+?\.png)\)", page)
    assert all((BOOK / name / picture).is_file() for picture in [*pictures, "thumbnail.png"])
    index = (BOOK / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(rf"^## \[.+\]\({name}/README\.md\)$", index, re.M)) == 1


def test_a_study_takes_no_options_of_an_evaluation_nor_an_evaluation_those_of_a_study(here):
    done = here("study.small=true")
    assert (done.status, "experiment=" in done.err) == (2, True)
    words = [f"experiment={QUICKEST}", "study.small=true", "tracking=none"]
    done = here(*words, "algo=hlr", "seed=1")
    assert (done.status, "algo=hlr, seed=1" in done.err) == (2, True)


def test_a_study_is_loaded_from_the_folder_of_studies_only(tmp_path):
    from srs_eval.run.study import load_study

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "study.py").write_text("raise SystemExit", encoding="utf-8")
    with pytest.raises(ConfigError, match="git clone"):
        load_study(NAMES[0], tmp_path)  # without the folder
    (tmp_path / "experiments").mkdir()
    for name in ("../mine", str(tmp_path / "mine")):
        with pytest.raises(ConfigError):
            load_study(name, tmp_path / "experiments")


def test_panels_that_a_figure_does_not_need_are_removed():
    from findings import panels

    with panels(4.0, 3.0, columns=2, title="three panels", rows=2) as (figure, every):
        every[-1].remove()
    assert figure.axes == [*every[:-1]]
    assert not any(axes.spines["top"].get_visible() for axes in figure.axes)
