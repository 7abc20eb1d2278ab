"""A prepared view of the MLflow UI, and the description of the experiment.

The UI keeps shared views in experiment tags, in an undocumented form that a later UI may not read.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

# Changes with the content below, so that a store with an older view gets the new one.
VIEW_KEY = "srs_eval_5"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
VIEW_NAME = "Leaderboard"
RUNS_COMPARED = 20

# Columns that every run list begins with: names, and of times of creation only the status.
FIXED_COLUMNS = {"attributes.`Run Name`": 180, "runDateAndNestInfo": 48}
# What the run list shows further, in this order, and how wide in pixels: the first nine fit into a
# window of 1400 pixels. The name of a run has its algorithm with its options.
COLUMNS = {
    "tags.`when`": 84,
    "metrics.`test/log_loss`": 113,
    "metrics.`test/normalized_entropy`": 96,
    "metrics.`test/brier_skill`": 108,
    "metrics.`calib/smece`": 91,
    "metrics.`discrimination/auc`": 121,
    "metrics.`calib/rmse_bins`": 109,
    "metrics.`calib/ici`": 68,
    "metrics.`users/n`": 64,
    # against the first job of a sweep
    "metrics.`vs_avg/log_loss_percent`": 165,
    "metrics.`users/failed`": 105,
    "metrics.`users/fallback`": 115,
    "attributes.`Dataset`": 220,
}
# Figures are logged under this name, so that the UI gives them a section of their own.
IMAGES_SECTION = "figures"
# The layout of a section: charts in a row, and their height in pixels.
SECTIONS = {
    "test": (3, 300),
    "calib": (3, 300),
    "discrimination": (3, 300),
    "vs_avg": (3, 300),
    # One figure to a row: three or four runs beside each other, and a second line of them.
    IMAGES_SECTION: (1, 700),
    "threshold": (4, 300),
    "time": (3, 300),
    "users": (3, 300),
    "train": (3, 300),
    "cost": (3, 300),
}
# Drawn first and in this order; the UI adds every other metric to its section by itself.
BARS = (
    "test/log_loss",
    "test/normalized_entropy",
    "test/brier_skill",
    "calib/smece",
    "calib/rmse_bins",
    "discrimination/auc",
    "vs_avg/log_loss_percent",
    "vs_avg/brier_percent",
    "vs_avg/rmse_bins_percent",
)

# Drawn without the list of all parameters that the UI puts above the pictures it finds.
FIGURES = ("calibration", "roc", "forgetting", "users")

NOTE = """\
Memory models, one run per algorithm, data and protocol: **[leaderboard]({table})** · **[charts]({charts})**

The runs of one sweep share the tag `sweep_id`. Compare runs only if their tag
`rows_fingerprint` is the same: they scored the same reviews; and rank them only if their tag `when`
is the same: their predictions are made at the same time. Numbers are means over users unless the
run's description says otherwise.

| section | question | better |
|---|---|---|
| `test/` | How good are the predicted probabilities? | `log_loss`, which decides, and Brier: lower; skill: higher |
| `calib/` | Of the reviews predicted at 90 %, are 90 % recalled? | nearer to 0 |
| `discrimination/` | Are forgotten reviews ranked below recalled ones? | higher |
| `vs_avg/` | By how many percent is the score another than that of the first job of the sweep, if this is `avg`? | lower |
| `figures/` | The same figure of every run, side by side | |
| `threshold/` | What if reviews fell due at a desired retention? | |
| `time/` | Does predicted recall fall as time passes? | nearer to 0 |
| `users/` | How many users, how they differ, how many fits failed | |
| `cost/` | Seconds and sizes | lower |
"""  # noqa: E501 - a row of a Markdown table is one line


def view_link(experiment_id: str, *, mode: str = "CHART") -> str:
    """Write the part of the view's address that follows the server's.

    `mode` is ``CHART``, ``TABLE`` (the plain list) or ``ARTIFACT`` (figures and tables).
    """
    return (
        f"#/experiments/{experiment_id}/runs?workflowType=machine_learning"
        f"&compareRunsMode={mode}&viewStateShareKey={VIEW_KEY}"
    )


def experiment_note(experiment_id: str) -> str:
    """Explain in Markdown what the experiment holds, with links to the view."""
    return NOTE.format(
        table=view_link(experiment_id, mode="TABLE"), charts=view_link(experiment_id)
    )


def view_state() -> dict[str, Any]:
    """Describe the view: columns, order, sections and charts."""
    return {
        "searchFilter": "",
        "orderByKey": "metrics.`test/log_loss`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(COLUMNS),
        "columnOrder": [*FIXED_COLUMNS, *COLUMNS],
        "columnWidths": {**FIXED_COLUMNS, **COLUMNS},
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsVisibilityMap": {},
        "runsHiddenMode": "SHOW_ALL",
        "compareRunCharts": [
            *(_chart("bar", *metric.split("/"), metricKey=metric) for metric in BARS),
            *(_image(figure) for figure in FIGURES),
        ],
        "compareRunSections": [_section(name) for name in SECTIONS],
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": True,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": True,
        "globalLineChartConfig": {
            "xAxisKey": "step",
            "lineSmoothness": 0,
            "selectedXAxisMetricKey": "",
        },
    }


def encode_view(state: Mapping[str, Any], now_ms: int) -> str:
    """Pack a view as the UI keeps it; `now_ms` (milliseconds since 1970) is shown as its time."""
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    return json.dumps(
        {
            "name": VIEW_NAME,
            "createdAt": now_ms,
            "updatedAt": now_ms,
            "state": f"deflate;{packed}",
        }
    )


def _chart(kind: str, section: str, name: str, **content: object) -> dict[str, Any]:
    in_section = {"bar": f"{section}-{name}", "image": name}[kind]
    return {
        "uuid": f"{kind}-{in_section}",
        "type": kind.upper(),
        "runsCountToCompare": RUNS_COMPARED,
        "metricSectionId": f"section-{section}",
        "deleted": False,
        # The UI lays out and completes what it takes for its own charts.
        "isGenerated": True,
        "displayName": name,
        **content,
    }


def _image(figure: str) -> dict[str, Any]:
    key = f"{IMAGES_SECTION}/{figure}"
    return _chart("image", IMAGES_SECTION, figure, imageKeys=[key], step=0, showRunParams=False)


def _section(name: str) -> dict[str, Any]:
    columns, height = SECTIONS[name]
    return {
        "columns": columns,
        "cardHeight": height,
        "uuid": f"section-{name}",
        "name": name,
        "display": True,
        # Or the UI would sort its charts by name.
        "isReordered": True,
        "deleted": False,
        "isGenerated": True,
    }
