"""Checks of call arguments. An invalid one is refused at once, with the valid ones named."""

from __future__ import annotations

import functools
import inspect
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as MappingOf
from typing import Any, ParamSpec, TypeVar, cast, get_args, get_type_hints

from tilewright.application.api.keywords import documented, settings_of
from tilewright.errors import CallError, InputError
from tilewright.interrupts import preserving_results, stop_requested
from tilewright.plugin.mapper import Budget
from tilewright.schema.document import suggestion
from tilewright.schema.objective import KNOWN, Objective

P = ParamSpec("P")
R = TypeVar("R")

SYNONYMS = {"latency": "cycles", "delay": "cycles", "runtime": "cycles", "time": "cycles"}
"""Common synonyms of objectives."""
KINDS: dict[str, tuple[type, str]] = {
    "str": (str, "text"),
    "os.PathLike[str]": (os.PathLike, "a path"),
    "bool": (bool, "True or False"),
    "MappingOf[str, Any]": (MappingOf, "a dict by name"),
    "Mapping[str, Any]": (MappingOf, "a dict by name"),
    "None": (type(None), "None"),
}
"""Annotation -> its type, and words for it. Arguments with other annotations are checked where they are used."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of the public API.

    Unknown keywords raise CallError with the nearest known one. The settings of
    `**settings: Unpack[...]` appear individually in signature and docstring, and the function
    receives all of them. After Ctrl-C the function returns its finished results with a warning.
    """
    signature, documentation = _spelt_out(function)
    known = list(signature.parameters)
    annotations = {name: str(parameter.annotation).split(" | ") for name, parameter in signature.parameters.items()}
    kinds = {name: [KINDS[word] for word in words] for name, words in annotations.items() if KINDS.keys() >= set(words)}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise CallError(
                    f"{function.__name__}() has no parameter '{name}'{suggestion(name, known)}; parameters: {', '.join(known)}"
                )
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise CallError(f"{function.__name__}(): {error}") from None
        bound.apply_defaults()
        for name, allowed in kinds.items():
            _check_kind(function.__name__, name, bound.arguments[name], allowed)
        with preserving_results() as is_outermost:
            result = function(*bound.args, **bound.kwargs)
            if is_outermost and stop_requested():  # the command line prints its own message
                warnings.warn(f"{function.__name__}() was interrupted: its result is incomplete", stacklevel=2)
            return result

    cast(Any, call).__signature__ = signature
    call.__doc__ = documentation
    return call


def _check_kind(function: str, name: str, value: object, allowed: Sequence[tuple[type, str]]) -> None:
    """Raise CallError if a value has none of the types that are allowed."""
    is_allowed = isinstance(value, tuple(kind for kind, _ in allowed))
    if not is_allowed or (isinstance(value, MappingOf) and not all(isinstance(key, str) for key in value)):
        raise CallError(f"{function}(): {name} must be {' or '.join(words for _, words in allowed)}, not {value!r}")


def _spelt_out(function: Callable[..., Any]) -> tuple[inspect.Signature, str | None]:
    """Return signature and docstring with one entry per setting of `**settings: Unpack[...]`."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return signature, function.__doc__
    (kind,) = get_args(get_type_hints(function)[parameters[-1].name])
    settings = settings_of(kind)
    keywords = [
        inspect.Parameter(
            setting.name, inspect.Parameter.KEYWORD_ONLY, default=setting.default, annotation=setting.annotation
        )
        for setting in settings.values()
    ]
    entry = re.compile(r"^ *\*\*settings: .*\n", flags=re.MULTILINE)
    documentation = entry.sub(lambda _: f"{documented(settings)}\n", function.__doc__ or "")
    return signature.replace(parameters=[*parameters[:-1], *keywords]), documentation


def one_of(what: str, word: object, known: Iterable[str], synonyms: MappingOf[str, str] | None = None) -> str:
    """Return `word` if it is one of `known`, otherwise raise InputError."""
    words = list(known)
    if word in words:
        return str(word)
    meant = (synonyms or {}).get(str(word).lower())
    near = f"; did you mean '{meant}'?" if meant else suggestion(str(word), words)
    raise InputError(f"{what} must be one of {', '.join(words)}, not {word!r}{near}")


def part_of(what: str, value: str | float) -> float:
    """Return `5%` or `0.05` as a fraction, otherwise raise InputError.

    >>> part_of("gap", "5%"), part_of("gap", 0.05)
    (0.05, 0.05)
    """
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1:
        raise InputError(f"{what} must be a part from 0 to 1, not {value}", hint=f"write --{what} 5% or --{what} 0.05")
    return number


def objective_of(word: str) -> Objective:
    """Return the objective, or raise InputError."""
    try:
        return Objective.named(word)
    except InputError:
        return Objective.named(one_of("objective", word, [known.name for known in KNOWN], SYNONYMS))


def names_of(what: str, given: str | Sequence[Any]) -> list[Any]:
    """Return names as a list; `given` is a list, or a text with commas.

    Raises:
        InputError: There are no names, or one occurs twice.
    """
    if isinstance(given, str):
        names: list[Any] = [name.strip() for name in given.split(",") if name.strip()]
    else:
        names = list(given) if isinstance(cast(object, given), Iterable) else []
    if not names or any(name in names[:index] for index, name in enumerate(names)):
        raise InputError(
            f"{what} must be a list of distinct names, or names separated by commas, not {given!r}",
            hint="tilewright plugins lists them",
        )
    return names


def at_least(least: int, **values: Any) -> None:
    """Raise InputError for values that are no numbers or below `least`; None means no limit."""
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= least):
            raise InputError(f"{name} must be a number of at least {least}, not {value!r}")


def whole(least: int, **values: Any) -> None:
    """Raise InputError for values that are no whole numbers, or below `least`."""
    at_least(least, **values)
    for name, value in values.items():
        if not isinstance(value, int):
            raise InputError(f"{name} must be a whole number, not {value!r}")


def budget_of(seconds: float | None, evaluations: int | None, patience: int | None) -> Budget:
    """Return the budget; raise InputError if a limit is invalid."""
    at_least(0, seconds=seconds)
    limits = {"evaluations": evaluations, "patience": patience}
    whole(1, **{name: limit for name, limit in limits.items() if limit is not None})
    return Budget(evaluations, seconds, patience)


def options_by_name(
    options: MappingOf[str, Any] | None, names: Sequence[str], what: str = "model_options"
) -> dict[str, dict[str, Any]]:
    """Return the options of each plugin: `KEY` is for all, `NAME.KEY` or a dict at `NAME` for one.

    >>> options_by_name({"a": 1, "x.b": 2}, ["x", "y"])
    {'x': {'a': 1, 'b': 2}, 'y': {'a': 1}}
    >>> options_by_name({"x": {"b": 2}}, ["x", "y"])
    {'x': {'b': 2}, 'y': {}}

    Raises:
        InputError: An option names an unknown plugin.
    """
    result: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in (options or {}).items():
        if key in result and isinstance(value, MappingOf):
            result[key] |= value
            continue
        name, dot, rest = key.partition(".")
        if dot and name not in result:
            kind = what.removesuffix("_options")
            hint = f"add --model {name}" if kind == "model" else f"add {name} to the {kind}s"
            raise InputError(f"{what} {key}: '{name}' is not one of {', '.join(names)}", hint=hint)
        for taker in [name] if dot else names:
            result[taker][rest if dot else key] = value
    return result
