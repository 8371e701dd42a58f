"""What a plugin tells the host about itself, before anything of it is built."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from tilewright.plugin.capabilities import Capabilities
from tilewright.values import Model

if TYPE_CHECKING:
    from tilewright.plugin.adapter import Adapter  # noqa: F401 -- named in quotes below
    from tilewright.plugin.costmodel import CostModel  # noqa: F401 -- named in quotes below
    from tilewright.plugin.estimator import Attribute, Estimator  # noqa: F401 -- named in quotes below
    from tilewright.plugin.frontend import Algorithm, Frontend  # noqa: F401 -- named in quotes below
    from tilewright.plugin.mapper import Mapper  # noqa: F401 -- named in quotes below
    from tilewright.plugin.route import Route

INTERFACE = 1
"""The version of the plugin interface this host speaks."""

T_co = TypeVar("T_co", covariant=True)


class Options(Model):
    """Base of a plugin's options: frozen, unknown ones refused. Give each a default and a `Field(description=...)`."""


class NoOptions(Options):
    """For plugins without options."""


@dataclass(frozen=True)
class Lazy:
    """A factory that imports a class when it is called, and calls that; see `lazy`."""

    module: str
    name: str
    arguments: tuple[object, ...] = ()

    def __call__(self, options: BaseModel) -> Any:
        kind = getattr(importlib.import_module(self.module), self.name)
        return kind(*self.arguments) if isinstance(options, NoOptions) else kind(*self.arguments, options)


def lazy(module: str, name: str, *arguments: object) -> Lazy:
    """A factory for `module.name(*arguments, options)`, imported when it is built; without the options where there are none.

    >>> lazy("package.module", "Class")
    Lazy(module='package.module', name='Class', arguments=())
    """
    return Lazy(module, name, arguments)


@dataclass(frozen=True)
class PluginSpec(Generic[T_co]):
    """One plugin. Cheap to make: heavy libraries are imported inside `factory`.

    Attributes:
        name: unique within its kind; `distribution/name` always works too.
        summary: one line for `tilewright plugins`.
        factory: options -> the plugin object; most are `lazy("package.module", "Class")`.
        options: the class of the options, an `Options`.
        capabilities: what it accepts, judged without building it.
        needs: modules it imports, looked for before it is built.
        hint: what to type when one is missing.
        interface: the interface version it was written for.
        programs: option -> program that it runs unless the option says otherwise, looked for on the PATH.
    """

    kind: ClassVar[str] = "plugin"
    methods: ClassVar[tuple[str, ...]] = ()
    """What the factory's product must be able to do."""

    name: str
    summary: str
    factory: Callable[[Any], T_co]
    options: type[BaseModel] = NoOptions
    capabilities: Capabilities = field(default_factory=Capabilities)
    needs: tuple[str, ...] = ()
    hint: str | None = None
    interface: int = INTERFACE
    programs: Mapping[str, str] = field(default_factory=dict)

    def missing(self, options: Iterable[str] = ()) -> tuple[str, ...]:
        """Modules of `needs` and `programs` that are not installed; programs named in one of the `options` aside."""
        modules = [name for name in self.needs if importlib.util.find_spec(name.partition(".")[0]) is None]
        given = set(options)
        programs = [name for option, name in self.programs.items() if option not in given and not shutil.which(name)]
        return (*modules, *programs)


@dataclass(frozen=True)
class MapperSpec(PluginSpec["Mapper"]):
    """A search for mappings.

    Attributes:
        ends: it ends by itself, so it gets no limit on evaluations that the user did not set.
        starts_with: installed mappers, with their default options, whose searches it may make parts of its own by `started`.
        proof_version: of a mapper that proves lower bounds, the version of the rules by which it does; certificates record it. Raise
            it with every correction of a rule, so that `verify --certificate` can tell which proofs rest on the old one.
    """

    kind: ClassVar[str] = "mapper"
    methods: ClassVar[tuple[str, ...]] = ("search",)

    ends: bool = False
    starts_with: tuple[str, ...] = ()
    proof_version: int | None = None


@dataclass(frozen=True)
class Approximation:
    """Something that a cost model is known not to count exactly.

    Attributes:
        code: stable, for tests and JSON.
        meaning: what a mapping has then, in a few words.
        detect: a count's route -> a sentence on what it has of this, and how the model counts it; None: nothing.
    """

    code: str
    meaning: str
    detect: Callable[[Route], str | None]


@dataclass(frozen=True)
class CostModelSpec(PluginSpec["CostModel"]):
    """What mappings cost.

    Attributes:
        executes: it executes mappings, so it can tell `verify` what really happens: its reports have `execution`.
        approximations: what it is known not to count exactly; `verify` tells them where they are found.
    """

    kind: ClassVar[str] = "cost model"
    methods: ClassVar[tuple[str, ...]] = ("bind",)

    executes: bool = False
    approximations: tuple[Approximation, ...] = ()


@dataclass(frozen=True)
class FrontendSpec(PluginSpec["Frontend"]):
    """A way in for work. `suffixes` of files it reads; `library`: names it can load -> one line with the source."""

    kind: ClassVar[str] = "frontend"
    methods: ClassVar[tuple[str, ...]] = ("recognises", "load")

    suffixes: tuple[str, ...] = ()
    library: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AdapterSpec(PluginSpec["Adapter"]):
    """Another tool's notation; its name is what `--from` and `--to` take."""

    kind: ClassVar[str] = "adapter"
    methods: ClassVar[tuple[str, ...]] = ("expressible", "render", "parse")


@dataclass(frozen=True)
class EstimatorSpec(PluginSpec["Estimator"]):
    """Energies and areas of components from their sizes.

    Attributes:
        components: what it knows -> attributes of an example that it answers at `example_nm`.
        example_nm: a technology node in nanometres.
        priority: of those who know a component the highest is asked first; None: asked only where a file or the user names it.
    """

    kind: ClassVar[str] = "estimator"
    methods: ClassVar[tuple[str, ...]] = ("estimate",)

    components: Mapping[str, Mapping[str, Attribute]] = field(default_factory=dict)
    example_nm: float = 45.0
    priority: float | None = 0.0


@dataclass(frozen=True)
class AlgorithmSpec(PluginSpec["Algorithm"]):
    """Other ways to compute a problem; its name is what `--algorithms` takes."""

    kind: ClassVar[str] = "algorithm"
    methods: ClassVar[tuple[str, ...]] = ("alternatives",)


KINDS: tuple[type[PluginSpec[Any]], ...] = (
    MapperSpec,
    CostModelSpec,
    FrontendSpec,
    AdapterSpec,
    EstimatorSpec,
    AlgorithmSpec,
)
