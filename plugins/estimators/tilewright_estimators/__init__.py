"""Registration of the built-in estimators; an estimator's module is imported when it is built."""

from __future__ import annotations

from pydantic import Field

from tilewright.plugin.estimator import Attribute
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import EstimatorSpec, Options, lazy

ARRAY: dict[str, Attribute] = {"size_bits": 524288, "width_bits": 64}
ARRAYS = {"sram": ARRAY, "smart_buffer": ARRAY}
HWCOMPONENTS = ARRAYS | {
    "mac": {"multiplier_bits": 8, "adder_bits": 16},
    "multiplier": {"width_bits": 16},
    "adder": {"width_bits": 16},
    "comparator": {"width_bits": 16},
    "counter": {"width_bits": 16},
}


class CactiOptions(Options):
    """Options of `cacti`."""

    program: str = Field(default="cacti", min_length=1, description="name or path of the program")
    seconds: float = Field(default=60.0, gt=0, description="time limit for one array, in seconds")


@hookimpl
def tilewright_plugins() -> list[EstimatorSpec]:
    """Return the built-in estimators."""
    return [
        EstimatorSpec(
            name="tables",
            summary="Tabulated costs: CACTI's on a grid of sizes, Aladdin's, DRAM's; nodes by Stillmaker and Baas.",
            factory=lazy("tilewright_estimators.tables", "TablesEstimator"),
            interface=1,
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
        EstimatorSpec(
            name="cacti",
            summary="CACTI itself, if it is installed; runs once per array with Accelergy's settings.",
            factory=lazy("tilewright_estimators.cacti", "CactiEstimator"),
            interface=1,
            options=CactiOptions,
            programs={"program": "cacti"},
            hint="compile CACTI 7 (github.com/HewlettPackard/cacti), or give its path: --estimator-option program=PATH",
            components=ARRAYS,
            priority=None,
        ),
        EstimatorSpec(
            name="hwcomponents",
            summary="The package hwcomponents and its models of components, on Python 3.12 and later.",
            factory=lazy("tilewright_estimators.hardware_components", "HwcomponentsEstimator"),
            interface=1,
            needs=("hwcomponents", "hwcomponents_library", "hwcomponents_cacti", "hwcomponents_neurosim"),
            hint="pip install hwcomponents hwcomponents-library hwcomponents-cacti hwcomponents-neurosim",
            components=HWCOMPONENTS,
            priority=None,
        ),
    ]
