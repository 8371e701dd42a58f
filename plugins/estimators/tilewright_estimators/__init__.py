"""Built-in estimators. Only names, options and examples live here; an estimator is imported when it is built."""

from __future__ import annotations

from tilewright.plugin.estimator import Attribute
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import EstimatorSpec, lazy

ARRAY: dict[str, Attribute] = {"size_bits": 524288, "width_bits": 64}
ARRAYS = {"sram": ARRAY, "smart_buffer": ARRAY}


@hookimpl
def tilewright_plugins() -> list[EstimatorSpec]:
    """The built-in estimators."""
    return [
        EstimatorSpec(
            name="tables",
            summary="Tabulated figures: CACTI's on a grid of sizes, Aladdin's, DRAM's; nodes by Stillmaker and Baas.",
            factory=lazy("tilewright_estimators.tables", "TablesEstimator"),
            components={
                **ARRAYS,
                "register": {"size_bits": 256, "width_bits": 16},
                "dram": {"kind": "LPDDR4", "width_bits": 64},
                "mac": {"multiplier_bits": 8, "adder_bits": 16},
                "multiplier": {"width_bits": 16},
                "adder": {"width_bits": 16},
                "comparator": {"width_bits": 16},
                "counter": {"width_bits": 16},
                "float_mac": {"width_bits": 32},
                "wire": {"width_bits": 16, "length_mm": 1},
                "dummy": {},
            },
        ),
    ]
