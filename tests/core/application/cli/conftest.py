import pytest

from support.command import Command, command


@pytest.fixture
def tilewright(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> Command:
    """`tilewright("map", "resnet50", ...)`, with a cache of its own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
    return command(monkeypatch, capsys)
