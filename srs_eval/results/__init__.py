"""The result of a run, and its folder: `save` is the only writer, `load` the only reader."""

from srs_eval.results.folder import load, save
from srs_eval.results.result import Result
from srs_eval.results.summary import Summary

__all__ = ["Result", "Summary", "load", "save"]
