"""Estimators that break promises. The good one knows adders."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import isfinite

from tilewright.plugin import Accuracy, Attribute, Estimate, Reason

ABOUT = Accuracy(source="a guess", error="not measured", valid="any width")


def no(message: str) -> Reason:
    return Reason(code="no", where="", message=message)


class Good:
    """A picojoule for every bit."""

    area = 10.0

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        if (component, action, set(attributes)) != ("adder", "compute", {"width_bits"}):
            return no("only adders")
        width = attributes["width_bits"]
        if isinstance(width, str) or not isfinite(width) or not 1 <= width <= 1024:
            return no("no such width")
        return Estimate(energy_pj=float(width), bits=int(width), area_um2=self.area, accuracy=ABOUT)


class Mute(Good):
    """Estimator without an answer to its own example."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        return no("not today")


class Moody(Good):
    """Never says the same twice."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        answer = super().estimate(component, attributes, action, technology_nm)
        return answer if isinstance(answer, Reason) else answer.model_copy(update={"energy_pj": random.random()})


class Shifting(Good):
    """Covers another area for every action: it has several."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        if component != "own-adder" or action not in ("read", "write"):
            return no("only adders of its own")
        answer = super().estimate("adder", attributes, "compute", technology_nm)
        if isinstance(answer, Reason):
            return answer
        return answer.model_copy(update={"area_um2": 10.0 if action == "read" else 11.0})


class Lenient(Good):
    """Ignores what it does not know."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        known = {key: value for key, value in attributes.items() if key == "width_bits"}
        return super().estimate(component, known, action, technology_nm)


class Fragile(Good):
    """Takes every size for a number that can be."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        if component == "adder" and "width_bits" in attributes:
            int(attributes["width_bits"])
        return super().estimate(component, attributes, action, technology_nm)
