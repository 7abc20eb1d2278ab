"""The lines of a traceback that are code of a plug-in."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path
from typing import NamedTuple

import srs_eval

_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)\n(?:    (.+)\n)?', re.MULTILINE)
_FRAMES_SHOWN = 3


class Frame(NamedTuple):
    """A line of a traceback."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        path = Path(self.file)
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        return f"{shown}:{self.line}, in {self.function}: {self.source}"


def own_frames(traceback: str) -> list[Frame]:
    """Return the last frames of a traceback in code of a plug-in, else the last frames.

    Code of a plug-in is neither in srs_eval, nor in the standard library, nor among the installed
    packages.
    """
    last = traceback.rpartition("Traceback (most recent call last):\n")[2]
    frames = [
        Frame(found[1], int(found[2]), found[3], found[4] or "") for found in _FRAME.finditer(last)
    ]
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    others = [Path(path) for name, path in sysconfig.get_paths().items() if name in names]
    others.append(Path(srs_eval.__file__).parent)
    own = [
        frame
        for frame in frames
        if not frame.file.startswith("<")
        and not any(Path(frame.file).is_relative_to(folder) for folder in others)
    ]
    return (own or frames)[-_FRAMES_SHOWN:]
