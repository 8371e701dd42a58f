"""An entry point whose module cannot be imported."""

import a_module_nobody_has  # type: ignore[import-not-found]  # noqa: F401
