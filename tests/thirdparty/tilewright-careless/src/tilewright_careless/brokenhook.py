"""An entry point whose hook raises."""

from tilewright.hookspecs import hookimpl
from tilewright.plugin import MapperSpec


@hookimpl
def tilewright_plugins() -> list[MapperSpec]:
    raise OSError("the licence server does not answer")
