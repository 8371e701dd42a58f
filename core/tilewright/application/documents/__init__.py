"""Documents that commands print with `--json`, and write as JSON files: one model for each kind."""

from __future__ import annotations

from importlib import import_module
from inspect import isclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.documents import Output

_KINDS = {
    "searches": (
        "map_output", "front_output", "budget_output", "fused_group_output", "fused_network_output",
        "fusion_gain_output",
    ),
    "generation": ("generate_output",),
    "comparisons": ("compare_output", "compare_groups_output", "correlate_output"),
    "checks": ("evaluate_output", "verify_output", "certificate_output", "diff_stats_output"),
    "hardware": ("explore_output", "space_output", "estimate_output", "calibrate_output", "fit_output"),
    "listings": (
        "convert_output", "library_output", "layers_output", "plugins_output", "plugin_output", "plugin_check_output",
        "plugin_new_output", "error_output", "run",
    ),
}  # fmt: skip
"""Module -> kinds of its documents."""
OUTPUT_KINDS = tuple(kind for kinds in _KINDS.values() for kind in kinds)
"""Kinds of documents."""


def output_model(kind: str) -> type[Output]:
    """Return the model of a kind of document."""
    from tilewright.documents import Output  # the kinds alone, which `--help` lists, need no model

    (name,) = (name for name, kinds in _KINDS.items() if kind in kinds)
    module = import_module(f"{__name__}.{name}")
    models = [model for model in vars(module).values() if isclass(model) and issubclass(model, Output)]
    (model,) = (
        model for model in models if "kind" in model.model_fields and model.model_fields["kind"].default == kind
    )
    return model
