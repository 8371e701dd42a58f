"""Templates and includes: included files, their locations, and files that are never read."""

from pathlib import Path

import pytest

from tilewright.errors import InputError
from tilewright_adapters.assembled import assembled
from tilewright_adapters.templates import folders_of

SECRET = "do-not-read-me"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, beside one that holds a secret."""
    monkeypatch.chdir(tmp_path)
    inside = tmp_path / "inside"
    (inside / "parts").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for place in (tmp_path / "outside", tmp_path):
        (place / "secret.yaml").write_text(f"secret: {SECRET}\n")
    (inside / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (inside / "parts/a.yaml").write_text("a:\n  b: {c: [1, 2]}\n  here: '{{cwd()}}'\n")
    (inside / "parts/b.yaml").write_text("a: {b: {c: 3}}\n")
    (inside / "base.yaml").write_text("base_ignore: &base {x: 1}\n")
    monkeypatch.chdir(inside)
    return inside


def read(folder: Path, text: str, **values: object) -> object:
    (folder / "t.yaml").write_text(text)
    return assembled(Path("t.yaml"), folders_of([Path("t.yaml")]), values).data


def complaint(folder: Path, text: str, **values: object) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, text, **values)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("x: {{include('parts/a.yaml', 'a.b.c')}}", {"x": [1, 2]}),
        ("x: {{include('parts/b.yaml')}}", {"x": {"a": {"b": {"c": 3}}}}),
        ("x: {{include_all('parts/*.yaml', 'a.b.c')}}", {"x": [[1, 2], 3]}),
        ("{{add_to_path('parts')}}\nx: {{include('b.yaml', 'a.b.c')}}", {"x": 3}),
        ("{{add_to_path(cwd() ~ '/parts')}}\nx: '{{find_path('b.yaml')}}'", {"x": "{inside}/parts/b.yaml"}),
        ("x: {{path_exists('parts/b.yaml')}}\ny: {{path_exists('c.yaml')}}", {"x": "True", "y": "False"}),
        ("{{include_text('base.yaml')}}\ny: {<<: *base, z: 2}", {"base_ignore": {"x": 1}, "y": {"<<": {"x": 1}, "z": 2}}),
        ("x: {{size}}\ny: {{other | default(7)}}", {"x": 5, "y": 7}),
        ("{% set n = 2 %}\nx: [{% for i in range(n) %}{{i}}, {% endfor %}]", {"x": [0, 1]}),
        ("x: !include parts/b.yaml\ny: !includedir parts", {"x": {"a": {"b": {"c": 3}}}, "y": [{"a": 1}, {"a": 2}]}),
    ],
)  # fmt: skip
def test_files_are_drawn_in(folder: Path, text: str, data: dict[str, object]) -> None:
    result = read(folder, text, size=5)
    if "includedir" in text:
        assert isinstance(result, dict) and [each["a"]["b"]["c"] for each in result.pop("y")] == [[1, 2], 3]
        data.pop("y")
    expected = {key: each.format(inside=folder) if isinstance(each, str) else each for key, each in data.items()}
    if "path_exists" in text:
        expected = {"x": True, "y": False}
    assert result == expected


def test_what_is_drawn_in_keeps_its_place(folder: Path) -> None:
    (folder / "t.yaml").write_text("x: {{include('parts/a.yaml', 'a')}}\ny: !include parts/b.yaml\n")
    document = assembled(Path("t.yaml"), folders_of([Path("t.yaml")]), {})
    assert str(document.locate(("x", "b", "c"))).startswith("parts/a.yaml:2:")
    assert str(document.locate(("y", "a"))).endswith("parts/b.yaml:1:4")
    assert str(document.locate(("x",))).startswith("parts/a.yaml:2:")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nx: {{size}}", ("t.yaml:2", "needs a value for size", "--set size=VALUE", "{% set size = VALUE %}")),
        ("a: 1\nx: {{include('nowhere.yaml')}}", ("t.yaml:2", "no file nowhere.yaml")),
        ("x: {{include('../secret.yaml')}}", ("t.yaml:1", "is outside the given folders", "give the folder .., too")),
        ("x: {{include_text('/etc/hostname')}}", ("is outside the given folders",)),
        ("x: {{include_all('../*.yaml')}}", ("is outside the given folders",)),
        ("x: !include ../secret.yaml", ("t.yaml:1:4", "is outside the given folders")),
        ("x: !includedir ../outside", ("is outside the given folders",)),
        ("x: {{include('parts/a.yaml', 'a.d')}}", ("parts/a.yaml:2", "there is no 'd' to include")),
        ("x: {{include_text('t.yaml')}}", ("includes itself",)),
        ("x: !include t.yaml", ("files include one another",)),
        ("{{setenv('TIMELOOP_X', 1)}}", ("setenv('TIMELOOP_X', ...) is not supported",)),
        ("x: {{cwd.__globals__}}", ("t.yaml:1", "unsafe")),
        ("a: 1\nx: {{ 1 + }}", ("t.yaml:2", "the template cannot be rendered")),
        pytest.param("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", ("the template cannot be rendered",), marks=pytest.mark.hostile),
        pytest.param("{% set ns = namespace(x='a') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", ("the template cannot be rendered",), marks=pytest.mark.hostile),
        ("x: '{{ 'a' * 3000000 }}'", ("more than",)),
        ("x: !part 3", ("refers to nothing here",)),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_with_its_place(folder: Path, text: str, words: tuple[str, ...]) -> None:
    message = complaint(folder, text)
    assert all(word in message for word in words), message
    assert SECRET not in message


def test_links_out_of_the_folder_are_not_followed(folder: Path) -> None:
    for text in ("{{include('link.yaml')}}", "{{include_text('link.yaml')}}"):
        assert "there is no file link.yaml" in complaint(folder, f"x: {text}") or SECRET not in complaint(folder, text)
    assert "is outside" in complaint(folder, "x: !include link.yaml")
    assert "link.yaml is outside" in complaint(folder, "x: !includedir .")
    assert read(folder, "x: {{path_exists('link.yaml')}}") == {"x": False}


def test_a_file_given_beside_opens_its_folder(folder: Path) -> None:
    (folder / "t.yaml").write_text("x: {{include('../outside/secret.yaml', 'secret')}}")
    opened = folders_of([folder / "t.yaml", folder.parent / "outside/secret.yaml"])
    assert assembled(folder / "t.yaml", opened, {}).data == {"x": SECRET}


def test_files_that_multiply_are_bounded(folder: Path) -> None:
    (folder / "12.yaml").write_text("x: 1\n")
    for number in range(12):
        (folder / f"{number}.yaml").write_text(f"x: [{', '.join([f'!include {number + 1}.yaml'] * 9)}]\n")
    assert "too many files are included" in complaint(folder, "x: !include 0.yaml")
    for number in range(12):
        inner = f"{{{{include('{number + 1}.yaml')}}}}"
        (folder / f"{number}.yaml").write_text(f"x: [{', '.join([inner] * 9)}]\n")
    assert "includes more than 1,000 files" in complaint(folder, "x: {{include('0.yaml')}}")
