"""Specs: declarations of plugins, which the host reads before it builds them."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel

from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.interface import check_interface
from tilewright.values import Model

if TYPE_CHECKING:
    from tilewright.plugin.adapter import Adapter  # noqa: F401 -- named in quotes below
    from tilewright.plugin.costmodel import CostModel  # noqa: F401 -- named in quotes below
    from tilewright.plugin.estimator import Attribute, Estimator  # noqa: F401 -- named in quotes below
    from tilewright.plugin.frontend import Algorithm, Frontend  # noqa: F401 -- named in quotes below
    from tilewright.plugin.groupmapper import GroupMapper  # noqa: F401 -- named in quotes below
    from tilewright.plugin.mapper import Mapper  # noqa: F401 -- named in quotes below
    from tilewright.plugin.route import Route
    from tilewright.plugin.strategy import Strategy  # noqa: F401 -- named in quotes below

T_co = TypeVar("T_co", covariant=True)


class Options(Model):
    """Base of a plugin's options: frozen, and unknown ones are refused.

    Give each a default and a `Field(description=...)`.

    Example:
        >>> from tilewright.plugin import Options
        >>> from pydantic import Field
        >>> class Mine(Options):
        ...     width: int = Field(default=8, ge=1, description="mappings kept per step")
        >>> Mine(width=4).width
        4
    """

    def narrowed(self, capabilities: Capabilities) -> Capabilities:
        """Return the capabilities of a plugin with these options: the declared ones, or fewer."""
        return capabilities


class NoOptions(Options):
    """Options of plugins without options.

    Example:
        >>> from tilewright.plugin import NoOptions
        >>> NoOptions.model_validate({})
        NoOptions()
    """


@dataclass(frozen=True)
class Lazy:
    """A factory that imports a class and calls it; see `lazy`."""

    module: str
    name: str
    arguments: tuple[object, ...] = ()

    def __call__(self, options: BaseModel) -> Any:
        kind = getattr(importlib.import_module(self.module), self.name)
        return kind(*self.arguments) if isinstance(options, NoOptions) else kind(*self.arguments, options)


def lazy(module: str, name: str, *arguments: object) -> Lazy:
    """Return a factory for `module.name(*arguments, options)`, imported when it is built.

    Plugins with `NoOptions` receive no options.

    >>> lazy("package.module", "Class")
    Lazy(module='package.module', name='Class', arguments=())
    """
    return Lazy(module, name, arguments)


class _Stated:
    """Base of specs: one for a newer interface is refused as such, before Python refuses its unknown fields."""

    def __new__(cls, *values: object, **named: object) -> Self:
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type] # subclasses are dataclasses
        stated = named.get("interface")
        if isinstance(stated, int) and not named.keys() <= known:
            check_interface(named.get("name"), stated)
        return super().__new__(cls)


def _is_installed(module: str) -> bool:
    """Return whether a top-level module can be imported; false if its own loader fails."""
    try:
        return importlib.util.find_spec(module) is not None
    except Exception:  # `__main__` has no spec, and a third party's import system may raise anything
        return False


@dataclass(frozen=True)
class PluginSpec(_Stated, Generic[T_co]):
    """Declaration of one plugin. It is cheap: heavy libraries are imported inside `factory`.

    Attributes:
        name: Unique within its kind; `distribution/name` always works, too.
        summary: One line for `tilewright plugins`.
        factory: Options -> plugin object; usually `lazy("package.module", "Class")`.
        options: Class of the options, a subclass of `Options`.
        capabilities: Accepted inputs, checked without building the plugin.
        needs: Modules that it imports, checked before it is built.
        hint: Command to type if one is missing.
        interface: Version of the plugin interface for which it was written, as a literal. `INTERFACE` would claim any
            version that the host has. A spec that states none was written for the first.
        programs: Option -> default program on the PATH, which the option replaces.
        default_for: Tasks for which it is used if the user names no plugin of its kind. `search`: the mapper and the
            cost model of `map`, `compare` and `explore`. `fallback`: the mapper of layers where the default one can
            prove nothing. `fusion`: the group mapper of `map GROUP --fuse`. `programs`: the cost model of programs in
            another notation. `reports`: the adapter of `diff_stats`. `exploration`: the strategy of `explore`.
            `calibration`: the cost model of `calibrate`. Built-in plugins come before others.

    Example:
        >>> from tilewright.plugin import MapperSpec, lazy
        >>> spec = MapperSpec("mine", "One line.", lazy("my_package.search", "Mine"), needs=("no_such_module",))
        >>> spec.missing()
        ('no_such_module',)
    """

    kind: ClassVar[str] = "plugin"
    methods: ClassVar[tuple[str, ...]] = ()
    """Methods that the plugin object must have."""

    name: str
    summary: str
    factory: Callable[[Any], T_co]
    options: type[BaseModel] = NoOptions
    capabilities: Capabilities = field(default_factory=Capabilities)
    needs: tuple[str, ...] = ()
    hint: str | None = None
    interface: int = 1
    programs: Mapping[str, str] = field(default_factory=dict)
    default_for: tuple[str, ...] = ()

    def missing(self, options: Iterable[str] = ()) -> tuple[str, ...]:
        """Return modules of `needs` and `programs` that are not installed.

        Programs that one of the `options` names are not checked.
        """
        modules = [name for name in self.needs if not _is_installed(name.partition(".")[0])]
        given = set(options)
        programs = [name for option, name in self.programs.items() if option not in given and not shutil.which(name)]
        return (*modules, *programs)


@dataclass(frozen=True)
class MapperSpec(PluginSpec["Mapper"]):
    """Declaration of a mapper.

    Attributes:
        ends: The mapper terminates on its own, so it gets no default limit on evaluations.
        starts_with: Installed warm-start mappers, which it runs with default options by `started`.
        proof_version: Version of the rules by which the mapper proves lower bounds; certificates record it. Increase it
            with every correction of a rule, so that `verify --certificate` recognises proofs by old rules.
        figures: Figures of its searches that the printed report shows.
        gap_reasons: Sentences on why a proof leaves a gap, by the figure that tells it: the gap, or several with the
            largest first. A sentence follows "because" and names the option that closes the gap, if there is one.
        limits_itself: A prover whose work is limited by options of its own. In `compare`, `--evaluations` and
            `--patience` limit the other mappers only.
        narrow_option: Option of a prover, a share of the best cost (0: off): at such a gap, or if no more is likely to be proved, it
            leaves out its longest work. Fused networks, which need hundreds of searches, set it unless a gap is given.

    Example:
        >>> from tilewright.plugin import MapperSpec, lazy
        >>> spec = MapperSpec("mine", "One line.", lazy("my_package.search", "Mine"), interface=1)
        >>> spec.kind
        'mapper'
    """

    kind: ClassVar[str] = "mapper"
    methods: ClassVar[tuple[str, ...]] = ("search",)

    ends: bool = False
    starts_with: tuple[str, ...] = ()
    proof_version: int | None = None
    figures: tuple[str, ...] = ()
    gap_reasons: Mapping[str, str] = field(default_factory=dict)
    limits_itself: bool = False
    narrow_option: str = ""


@dataclass(frozen=True)
class GroupMapperSpec(PluginSpec["GroupMapper"]):
    """Declaration of a group mapper; `fuse` accepts its name.

    Attributes:
        space: Group mappings that its bounds cover, as the end of a sentence: "proved optimal among mappings with ...".
        proof_version: Version of the rules by which it proves lower bounds; certificates record it. Increase it with every
            correction of a rule. None: it proves nothing.

    Example:
        >>> from tilewright.plugin import GroupMapperSpec, lazy
        >>> spec = GroupMapperSpec("mine", "One line.", lazy("my_package.search", "Mine"), interface=1)
        >>> spec.kind
        'group mapper'
    """

    kind: ClassVar[str] = "group mapper"
    methods: ClassVar[tuple[str, ...]] = ("search_group",)

    space: str = ""
    proof_version: int | None = None


@dataclass(frozen=True)
class Approximation:
    """Case that a cost model does not count exactly.

    Attributes:
        code: Stable, for tests and JSON.
        meaning: Property of a mapping, in a few words.
        detect: Route of a count -> a sentence on its property, and on how the model counts it; None: the count is
            exact.

    Example:
        >>> from tilewright.plugin import Approximation
        >>> Approximation("halos", "windows overlap", lambda route: None).meaning
        'windows overlap'
    """

    code: str
    meaning: str
    detect: Callable[[Route], str | None]


@dataclass(frozen=True)
class CostModelSpec(PluginSpec["CostModel"]):
    """Declaration of a cost model.

    Attributes:
        executes: The model executes mappings, so that its reports have `execution`, for `verify`.
        approximations: Known approximations; `verify` and `evaluate` report them where they apply.
        conventions: Topic -> its rule in a few words, of the topics in `tilewright.plugin.TOPICS`. `evaluate` and
            `correlate` print those in which models differ.

    Example:
        >>> from tilewright.plugin import CostModelSpec, lazy
        >>> spec = CostModelSpec("mine", "One line.", lazy("my_package.model", "Mine"), interface=1)
        >>> spec.kind
        'cost model'
    """

    kind: ClassVar[str] = "cost model"
    methods: ClassVar[tuple[str, ...]] = ("bind",)

    executes: bool = False
    approximations: tuple[Approximation, ...] = ()
    conventions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FrontendSpec(PluginSpec["Frontend"]):
    """Declaration of a frontend.

    `suffixes` are those of its files: a third party's frontend reads one that it recognises, if no other plugin does.
    `library` maps loadable names to one line with the source; names of the library remain the library's.
    `expects` maps names or sources to (layers, multiplications), which the conformance kit compares.

    Example:
        >>> from tilewright.plugin import FrontendSpec, lazy
        >>> spec = FrontendSpec("mine", "One line.", lazy("my_package.reader", "Mine"), suffixes=(".rows",), interface=1)
        >>> spec.kind
        'frontend'
    """

    kind: ClassVar[str] = "frontend"
    methods: ClassVar[tuple[str, ...]] = ("recognises", "load")

    suffixes: tuple[str, ...] = ()
    library: Mapping[str, str] = field(default_factory=dict)
    expects: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class AdapterSpec(PluginSpec["Adapter"]):
    """Declaration of another tool's notation; `--from` and `--to` accept its name.

    Attributes:
        signs: Keys that only files of this notation have, at the top (`arch`), below (`architecture.subtree`), or in the
            items of a list (`-.loop_dims`). If no adapter reads a file, the one with such a key says why. Keys of built-in
            notations come first.

    Example:
        >>> from tilewright.plugin import AdapterSpec, lazy
        >>> spec = AdapterSpec("mine", "One line.", lazy("my_package.notation", "Mine"), interface=1)
        >>> spec.kind
        'adapter'
    """

    kind: ClassVar[str] = "adapter"
    methods: ClassVar[tuple[str, ...]] = ("expressible", "render", "parse")

    signs: tuple[str, ...] = ()


@dataclass(frozen=True)
class EstimatorSpec(PluginSpec["Estimator"]):
    """Declaration of an estimator: energies and areas of components by size.

    Attributes:
        components: Component -> attributes of an example that it can estimate at `example_nm`.
        example_nm: Technology node in nanometres.
        priority: The estimator with the highest priority for a component comes first, after all built-in ones. None: it is used only if named.

    Example:
        >>> from tilewright.plugin import EstimatorSpec, lazy
        >>> spec = EstimatorSpec("mine", "One line.", lazy("my_package.table", "Mine"), interface=1)
        >>> spec.kind
        'estimator'
    """

    kind: ClassVar[str] = "estimator"
    methods: ClassVar[tuple[str, ...]] = ("estimate",)

    components: Mapping[str, Mapping[str, Attribute]] = field(default_factory=dict)
    example_nm: float = 45.0
    priority: float | None = 0.0


@dataclass(frozen=True)
class AlgorithmSpec(PluginSpec["Algorithm"]):
    """Declaration of an algorithm; `--algorithms` accepts its name.

    Example:
        >>> from tilewright.plugin import AlgorithmSpec, lazy
        >>> spec = AlgorithmSpec("mine", "One line.", lazy("my_package.steps", "Mine"), interface=1)
        >>> spec.kind
        'algorithm'
    """

    kind: ClassVar[str] = "algorithm"
    methods: ClassVar[tuple[str, ...]] = ("alternatives",)


@dataclass(frozen=True)
class StrategySpec(PluginSpec["Strategy"]):
    """Declaration of a strategy of `explore`; `--strategy` accepts its name.

    `samples` declares that it chooses among all points, so that the user has to limit their number. `together` declares that
    it proposes points together, whose results then depend on one another: no other exploration uses them.

    Example:
        >>> from tilewright.plugin import StrategySpec, lazy
        >>> spec = StrategySpec("mine", "One line.", lazy("my_package.points", "Mine"), interface=1)
        >>> spec.kind
        'strategy'
    """

    kind: ClassVar[str] = "strategy"
    methods: ClassVar[tuple[str, ...]] = ("explore",)

    samples: bool = False
    together: bool = False


KINDS: tuple[type[PluginSpec[Any]], ...] = (
    MapperSpec,
    GroupMapperSpec,
    CostModelSpec,
    FrontendSpec,
    AdapterSpec,
    EstimatorSpec,
    AlgorithmSpec,
    StrategySpec,
)
