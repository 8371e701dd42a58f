"""The estimator `hwcomponents`, as far as it goes without that package."""

import logging
import sys
from pathlib import Path

import pytest

from tilewright_estimators.hardware_components import loaded


def test_the_package_leaves_our_warnings_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import logging\nroot = logging.getLogger()\nroot.addHandler(logging.NullHandler())\nroot.setLevel(1)\n"
    (tmp_path / "hwcomponents.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "hwcomponents", raising=False)
    root = logging.getLogger()
    before = root.handlers[:], root.level

    assert loaded().__name__ == "hwcomponents"

    assert (root.handlers, root.level) == before
    monkeypatch.delitem(sys.modules, "hwcomponents")
