"""The pages are true: links lead somewhere, code runs, tables are what the programs print."""

import doctest
import os
import platform
import re
import shlex
import sys
import tomllib
from importlib import import_module

import pytest
import yaml
from cases import ROOT, loaded, rest_nightly
from commands import mistakes, process, write

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/**/*.md")])
NAMING = [
    *PAGES,
    *sorted([*ROOT.glob("benchmarks/*.md"), *ROOT.glob("examples/**/*.md")]),
    *sorted(ROOT.glob("tests/**/*.md")),
]
FOLDERS = "benchmarks conf docs examples experiments hydra_plugins scripts srs_eval tests"
NAMED = re.compile(rf"(?<![\w/.-])(?:{FOLDERS.replace(' ', '|')})/[\w/.*-]*[\w*/]|\btest_\w+\.py\b")
# Files that a reader is shown how to write, and places in their own folders.
THEIRS = re.compile(r"conf/(algo/(boxes|doubling|theirs)|data/diary|tracking/spreadsheet)\.yaml")
SHELL = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```", re.S | re.M)
RUN = re.compile(r"(?:python -m srs_eval|\./run) (.*)")
# Options that a reader is shown how to write.
THEIR_OPTION = re.compile(r"=(bench_module|boxes|doubling|theirs|diary|spreadsheet|best)\b")
WITH_EXAMPLES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted((ROOT / "srs_eval").rglob("*.py"))
    if ">>>" in file.read_text(encoding="utf-8")
]
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")
# A network's float32 sums differ from one processor to the next, and training amplifies it.
LOOSE = {"lstm": 0.002}


def named(path):
    return str(path.relative_to(ROOT))


def assert_alike(one, other, **tolerance):
    """Compare texts that may differ a little in their numbers."""
    assert NUMBER.sub("", one) == NUMBER.sub("", other)
    numbers = [list(map(float, NUMBER.findall(text))) for text in (one, other)]
    assert numbers[0] == pytest.approx(numbers[1], **tolerance)


publish = loaded("experiments/quick_start/publish.py")
algorithms = loaded("docs/make_algorithms.py")


@pytest.mark.parametrize("page", NAMING, ids=named)
def test_every_file_that_a_page_links_to_or_names_exists(page):
    text = page.read_text(encoding="utf-8")
    assert [to for to in LINK.findall(text) if not (page.parent / to).exists()] == []
    named = {name for name in NAMED.findall(text) if "NAME" not in name}
    missing = [
        name
        for name in named
        if not THEIRS.fullmatch(name)
        and not any(ROOT.glob(name if "/" in name else f"tests/**/{name}"))
        and not (page.parent / name).exists()
    ]
    assert missing == [] or page.name == "CHANGELOG.md"  # which names those of its time


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_of_a_page_is_understood(page):
    text = page.read_text(encoding="utf-8")
    lines = "\n".join(SHELL.findall(text)).replace("\\\n", " ").splitlines()
    # what is said to be an option within a sentence is one of the default algorithm
    lines += re.findall(r"arguments are keys \(`(.+?)`\)", text)
    commands = [RUN.search(line) for line in lines]
    for found in commands:
        if found and not THEIR_OPTION.search(found[1]):
            words = shlex.split(found[1], comments=True)
            assert mistakes([each for each in words if "=" in each and each[0] != "-"]) == []


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_of_docstrings_show_what_the_code_returns(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted
    assert not found.failed


@pytest.mark.slow
@pytest.mark.parametrize("page", rest_nightly(["README.md", "docs/method.md"]))
def test_the_python_of_the_readme_and_of_the_method_runs(page, tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.S)
    done = process([sys.executable, "-W", "error", "-c", block], cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_the_leaderboard_of_the_readme_is_what_the_study_prints(tmp_path, capsys, monkeypatch):
    from commands import run_here

    monkeypatch.chdir(tmp_path)
    words = "-m experiment=quick_start tracking=none figures=false hydra.sweep.dir=study"
    assert run_here(words.split()) == 0
    printed = capsys.readouterr().out.splitlines()
    (board,) = {publish.published(page) for page in publish.PAGES}
    assert "log loss" in board
    board = board.splitlines()
    begin = printed.index(board[0])
    for line, again in zip(board, printed[begin : begin + len(board)], strict=True):
        assert_alike(again, line, abs=LOOSE.get(line.partition(" ")[0], 2e-4))


def test_the_release_has_one_number_and_one_date():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert newest is not None
    assert project["version"] == str(cited["version"]) == newest[1]
    assert str(cited["date-released"]) == newest[2]


@pytest.mark.slow
def test_the_page_of_algorithms_is_what_its_program_makes_and_each_says_what_it_must():
    assert [each.name for each in algorithms.options() if each.facts.missing] == []
    assert algorithms.PAGE.read_text(encoding="utf-8") == algorithms.page()


def test_every_capability_names_a_test_that_exists():
    table = (ROOT / "tests" / "CAPABILITIES.md").read_text("utf-8")
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    lines = [line for line in lines if line != "| capability | test |"]
    for line in lines:
        file, _, test = line.split("`")[-2].partition("::")
        assert f"def {test}(" in (ROOT / "tests" / file).read_text("utf-8"), line


BOOK = ROOT / "experiments"
# The quickest study first: its small version is run every day.
QUICKEST = "toy_experiment"
NAMES = sorted(
    {file.parent.name for file in BOOK.glob("*/study.py")}, key=lambda n: (n != QUICKEST, n)
)
# Small logs have several minima, and the last bits decide which of them a fit finds: the tables
# are of one level of arithmetic, which all but very old x86 processors have.
ONE_ARITHMETIC = {"SRS_EVAL_CPU": "x86-64-v3"} if platform.machine() == "x86_64" else {}


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_nightly(NAMES))
def test_the_small_version_of_a_study_makes_the_tables_that_are_committed(name, tmp_path):
    words = [sys.executable, str(BOOK / name / "study.py"), "small=true", "hydra.run.dir=out"]
    done = process(words, cwd=tmp_path, env={**os.environ, **ONE_ARITHMETIC})
    assert done.returncode == 0, done.stderr
    committed = {file.name: file for file in (BOOK / name / "small").glob("*.csv")}
    made = {file.name: file for file in (tmp_path / "out" / "tables").glob("*.csv")}
    assert set(made) == set(committed) != set()
    for file in committed:
        # three or four digits: a number on the edge may be rounded to either side
        texts = (each[file].read_text("utf-8") for each in (made, committed))
        assert_alike(*texts, rel=0.01, abs=3e-4)
    assert list((tmp_path / "out" / "figures").glob("*.png"))


BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
NAME = re.compile(r"`([\w/]+\.(?:py|yaml))`")
# Small enough for a test; everything else is run as it stands on the page.
SMALL = ["tracking=none", "figures=false", "data.size_scale=0.02", "data.users=2"]


@pytest.mark.nightly
def test_each_command_of_the_page_runs(tmp_path, monkeypatch):
    """Beside the files that the page of plug-ins shows how to write; Python, too."""
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    # text before a block, its language and its content, in turn
    parts = BLOCK.split((ROOT / "docs/plugins.md").read_text(encoding="utf-8"))
    commands = []
    for before, language, text in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        *_, name = ["", *NAME.findall(before)]
        if language == "sh":
            words = shlex.split(text.strip().removeprefix("python ").replace("\\\n", " "))
            commands.append([*words, *(SMALL if "data=" not in text else SMALL[:2])])
        elif name and language in ("python", "yaml"):
            write(tmp_path, {name: text})
        elif language == "python":
            commands.append(["-c", text])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    for command in commands:
        done = process([sys.executable, *command], cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr


NOTEBOOK = ROOT / "examples" / "notebook" / "evaluate.ipynb"


def text_of(output):
    return output.get("text") or output.get("data", {}).get("text/plain", "")


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_has_the_code_of_its_page_and_shows_what_it_prints(tmp_path):
    nbformat, nbclient, _ = map(pytest.importorskip, ("nbformat", "nbclient", "ipykernel"))
    kept, ran = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    code = [block.strip() for block in re.findall(r"```python\n(.*?)```", page, re.S)]
    assert [cell.source for cell in kept.cells if cell.cell_type == "code"] == code
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(ran, timeout=300, resources=resources).execute()
    for cells in zip(kept.cells, ran.cells, strict=True):
        outputs = [cell.get("outputs", []) for cell in cells]
        texts = [" ".join(map(text_of, each)) for each in outputs]
        assert_alike(*texts, abs=0.002)
