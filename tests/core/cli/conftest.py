import pytest
from command import Command, command


@pytest.fixture
def tilewright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`tilewright("map", "resnet50", ...)`."""
    return command(monkeypatch, capsys)
