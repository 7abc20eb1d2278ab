"""Rebuild the book: run every study, and rewrite the tables and figures of its page.

``python experiments/book.py study.josh=JOSH.csv study.anki_mit=FOLDER study.published=FILE`` runs
every study with the data that it can use. Parts without data are left out of the pages, so give all
data that the committed pages were made with. ``python experiments/book.py NAME`` runs one study,
``--index`` none. ``SRS_EVAL_CPU=x86-64-v3 python experiments/book.py --small`` rewrites what the
tests compare, in the arithmetic that they ask for.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from types import SimpleNamespace

from omegaconf import OmegaConf

from srs_eval.config.settings import composed
from srs_eval.plots.style import save_figure
from srs_eval.run.study import Findings, load_study, show

HERE = Path(__file__).parent
CONF = HERE.parent / "conf" / "experiment"
INDEX = HERE / "README.md"
SMALL = "small"
THUMBNAIL = "thumbnail"
_THUMBNAIL_INCHES = 2.1  # at 150 dots per inch


def names() -> list[str]:
    """Return the names of the studies that have a file study.py."""
    return sorted(file.parent.name for file in HERE.glob("*/study.py"))


def options_of(name: str, overrides: list[str]) -> SimpleNamespace:
    """Return the options of a study; overrides that it does not have are left out."""
    known = composed([f"experiment={name}"]).study
    own = [word for word in overrides if word.partition("=")[0].removeprefix("study.") in known]
    options = OmegaConf.to_container(composed([f"experiment={name}", *own]).study, resolve=True)
    assert isinstance(options, dict)
    return SimpleNamespace(**{str(key): value for key, value in options.items() if key != "name"})


def between(text: str, name: str, content: str) -> str:
    """Replace what is between the markers of a name."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    replaced, count = pattern.subn(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)
    if count != 1:
        raise SystemExit(f"{count} places for <!-- {name} --> … <!-- /{name} -->")
    return replaced


def found_between(text: str, name: str) -> str:
    """Return what is between the markers of a name."""
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.S)
    return "" if match is None else match[1].strip()


def write_page(name: str, found: Findings, seconds: float) -> None:
    """Rewrite the tables, the figures and the conclusions of a page."""
    page = HERE / name / "README.md"
    text = page.read_text(encoding="utf-8")
    for table in found.tables:
        text = between(text, table, found.text(table, "github"))
    text = between(text, "answer", found.answer)
    text = between(text, "learned", "\n".join(f"- {sentence}" for sentence in found.learned))
    text = between(
        text, "cost", f"It takes about {max(round(seconds / 10) * 10, 10)} s of CPU time."
    )
    page.write_text(text, encoding="utf-8")
    for figure_name, figure in found.figures.items():
        save_figure(figure, HERE / name, figure_name, formats=("png",))
    first = next(iter(found.figures.values()))
    first.set_dpi(100)
    small = 100 * _THUMBNAIL_INCHES / first.get_size_inches()[0]
    first.savefig(HERE / name / f"{THUMBNAIL}.png", dpi=1.5 * small, metadata={"Software": None})


def write_small(name: str, found: Findings) -> None:
    """Write the tables of the small version, which a test compares."""
    folder = HERE / name / SMALL
    folder.mkdir(exist_ok=True)
    for table, frame in found.tables.items():
        frame.to_csv(folder / f"{table}.csv", index=False)


def write_index() -> None:
    """Write the page of all studies: question, thumbnail, answer, and CPU time."""
    parts, total = [], 0
    for name in names():
        page = f"{name}/README.md"
        text = (HERE / page).read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        question = text.partition("**Question.**\n")[2].partition("\n\n")[0]
        cost = re.search(r"about (\d+) s", found_between(text, "cost"))
        seconds = 0 if cost is None else int(cost[1])
        total += seconds
        picture = f"[![{name}]({name}/{THUMBNAIL}.png)]({page})"
        answer = f"**Answer.**\n{found_between(text, 'answer')}\n({seconds} s of CPU time)"
        parts += [f"## [{title}]({page})", picture, question, answer]
    parts.append(f"All studies together take {total / 60:.0f} minutes of CPU time.")
    text = between(INDEX.read_text(encoding="utf-8"), "index", "\n\n".join(parts))
    INDEX.write_text(text, encoding="utf-8")


def main() -> None:
    """Run the studies and rewrite their pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", metavar="NAME or study.OPTION=VALUE")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--index", action="store_true", help="only rewrite the page of all studies")
    given = parser.parse_args()
    chosen = [word for word in given.words if "=" not in word] or names()
    overrides = [word for word in given.words if "=" in word]
    overrides += ["study.small=true"] if given.small else []
    for name in [] if given.index else chosen:
        cpu, wall = time.process_time(), time.perf_counter()
        found = load_study(name, HERE)(options_of(name, overrides))
        seconds = time.process_time() - cpu
        show(found)
        if given.small:
            write_small(name, found)
        else:
            write_page(name, found, seconds)
        print(f"\n{name}: {seconds:.0f} s of CPU time, {time.perf_counter() - wall:.0f} s")  # noqa: T201
    write_index()


if __name__ == "__main__":
    main()
