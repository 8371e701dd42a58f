"""Common behaviour of all values with fields."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import field_serializer
from pydantic_core import PydanticSerializationError

from tilewright.values import Model


class Loud(Model):
    kind: type[BaseException]

    @field_serializer("kind")
    def _raise(self, kind: type[BaseException]) -> str:
        raise kind("while it is written")


class Outer(Model):
    inner: tuple[Loud, ...]


WAYS: list[Callable[[Model], Any]] = [Model.model_dump, Model.model_dump_json]


@pytest.mark.parametrize("written", WAYS)
def test_ctrl_c_while_values_are_written_is_ctrl_c(written: Callable[[Model], Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        written(Outer(inner=(Loud(kind=KeyboardInterrupt),)))
    with pytest.raises(PydanticSerializationError, match="while it is written"):
        written(Outer(inner=(Loud(kind=ValueError),)))


def test_tab_completion_has_the_names_of_the_package_only() -> None:
    assert {"kind", "model_copy"} == {name for name in dir(Loud(kind=ValueError)) if not name.startswith("_")}
