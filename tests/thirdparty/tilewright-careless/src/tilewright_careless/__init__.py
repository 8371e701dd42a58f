"""One plugin per violation. The classes live in modules that the factories import."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict

from tilewright.plugin import (
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    MapperSpec,
    PluginSpec,
    StrategySpec,
    hookimpl,
)


@dataclass(frozen=True)
class Late:
    """A factory that imports the class when it is called."""

    module: str
    name: str

    def __call__(self, options: BaseModel) -> Any:
        return getattr(importlib.import_module(f"tilewright_careless.{self.module}"), self.name)()


class LaxOptions(BaseModel):
    """Takes any option, misspelt ones too."""

    speed: int = 1


class OddOptions(BaseModel):
    """Holds what JSON cannot."""

    model_config = ConfigDict(extra="forbid")

    words: Any = frozenset({"a"})


def _specs(kind: Callable[..., PluginSpec[Any]], module: str, names: str) -> list[PluginSpec[Any]]:
    return [
        kind(name=_name(name), summary=f"Breaks a promise: {_name(name)}.", factory=Late(module, name), interface=1)
        for name in names.split()
    ]


def _adders(component: str) -> Callable[..., PluginSpec[Any]]:
    """Asked last, and only where they are named."""
    return partial(EstimatorSpec, components={component: {"width_bits": 16}}, priority=None)


def _name(class_name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in class_name).lstrip("-")


@hookimpl
def tilewright_plugins() -> list[PluginSpec[Any]]:
    """All violations, and of each kind the plugin without any."""
    from tilewright_careless.heavy import make_heavy

    good = MapperSpec(name="good", summary="Draws.", factory=Late("mappers", "Good"), interface=1)
    return [
        good,
        replace(good, name="talkative", summary="Draws,\nand tells at length how."),
        replace(good, name="lax-options", options=LaxOptions),
        replace(good, name="odd-options", options=OddOptions),
        replace(good, name="heavy", factory=make_heavy),
        *_specs(
            MapperSpec,
            "mappers",
            "OtherArguments Uncovered Idle Unseeded Remembering Overwriting Unstoppable Hopeful Boasting Talking Oversleeping "
            "Lawless",
        ),
        *_specs(
            CostModelSpec,
            "costmodels",
            "Refusing CountsForTruth TwoMinds Neighbourly NeedsSomething Uncovering Unfitting NoEdp LastBound Overbound Boastful "
            "Unpicklable Estimating Unsummed Overused Hasty",
        ),
        CostModelSpec(name="good", summary="Plain.", factory=Late("costmodels", "Good"), interface=1),
        *_specs(FrontendSpec, "frontends", "Good Startled Deaf ListsOnly Dreaming Unwritable Rude Grasping"),
        *_specs(AdapterSpec, "adapters", "Good Forgetful Dated Straying Silent Rude Grasping"),
        *_specs(_adders("adder"), "estimators", "Good Mute Moody Lenient Fragile"),
        *_specs(_adders("own-adder"), "estimators", "Shifting"),
        *_specs(AlgorithmSpec, "algorithms", "Good Untold Mistaken Unmoved Moody Unwritable"),
        *_specs(GroupMapperSpec, "groupmappers", "Good Illegal Boundless Moody Hasty"),
        *_specs(StrategySpec, "strategies", "Good Straying Idle Unseeded Remembering Touchy"),
    ]
