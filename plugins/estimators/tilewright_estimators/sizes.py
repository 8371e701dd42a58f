"""Validation of component attributes: known names, and whole numbers in a plausible range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from tilewright.errors import Reason
from tilewright.plugin.estimator import COMPONENTS, Attribute
from tilewright.schema.document import suggestion

MAX_SIZE = 2.0**53
DEFAULTS = {"banks": 1.0, "ports": 1.0}
FRACTIONS = ("length_mm",)


class Refused(Exception):
    """Error: there is no estimate; `reason` holds the cause."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.reason = Reason(code=code, where="", message=message)


def check_asked(component: str, action: str, known: Mapping[str, object]) -> None:
    """Check that the component is known and has the action. Raises Refused."""
    if component not in known:
        raise Refused(
            "component", f"unknown component '{component}'{suggestion(component, known)}; known: {', '.join(known)}"
        )
    actions = COMPONENTS[component][0]
    if action not in actions:
        raise Refused("action", f"a {component} has no action '{action}'; it has {', '.join(actions)}")


def _meant(name: str, names: Sequence[str]) -> str:
    """Return what an unknown attribute probably means, as a clause."""
    if "size_bits" in names and {"capacity", "size", "depth", "words", "bytes"} & set(name.split("_")):
        return "; its size is stated in bits, as size_bits"
    return suggestion(name, names)


def checked(component: str, attributes: Mapping[str, Attribute]) -> dict[str, float]:
    """Return the numeric attributes of a component, with defaults for `banks` and `ports`.

    Raises:
        Refused: an attribute is unknown, missing or out of range.
    """
    names = COMPONENTS[component][1]
    for name in attributes:
        if name not in names:
            raise Refused(
                "attribute",
                f"a {component} has no attribute '{name}'{_meant(name, names)}; it has {', '.join(names) or 'none'}",
            )
    numbers: dict[str, float] = {}
    for name in names:
        if name == "kind":
            continue
        value = attributes.get(name, DEFAULTS.get(name))
        if value is None:
            raise Refused("attribute", f"a {component} needs {name}")
        if isinstance(value, str) or isinstance(value, bool) or not isfinite(value) or not 0 < value <= MAX_SIZE:
            raise Refused("attribute", f"{name} is {value!r}, expected a number above 0")
        if name not in FRACTIONS and value != int(value):
            raise Refused("attribute", f"{name} is {value:g}, expected a whole number")
        numbers[name] = float(value)
    return numbers
