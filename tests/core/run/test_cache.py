"""The key of a cached result: a digest of the code that the search ran."""

from pathlib import Path

import pytest

from tilewright.run.cache import code_of


def test_code_includes_the_packages_that_a_plugin_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, shared = tmp_path / "tilewright_one", tmp_path / "tilewright_shared.py"
    plugin.mkdir()
    (plugin / "__init__.py").write_text("")
    (plugin / "model.py").write_text("def f():\n    from tilewright_shared import g\n")
    monkeypatch.syspath_prepend(tmp_path)

    def digest() -> str:
        code_of.cache_clear()
        return code_of("tilewright_one")

    absent = digest()
    shared.write_text("g = 1\n")
    first = digest()
    shared.write_text("g = 2  # another\n")
    assert len({absent, first, digest()}) == 3
    assert code_of("tilewright_nowhere") == ""
