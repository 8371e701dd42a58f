"""An entry point whose hook raises."""

from tilewright.plugin import MapperSpec, hookimpl


@hookimpl
def tilewright_plugins() -> list[MapperSpec]:
    raise OSError("the licence server does not answer")
