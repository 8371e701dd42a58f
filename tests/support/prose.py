"""Plain English in docstrings, comments, messages and the manual: three counts that may only fall.

`python tests/support/prose.py` lists them, and fails if one rises. Lower a ceiling with every change that lowers its count.
`--words` prints the words of the manual's pages instead.
"""

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("core", "plugins", "adapters", "docs")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ".github/RELEASING.md",
    "benchmarks/accelforge.md",
    "benchmarks/sunstone.md",
)
MAX_WORDS = 25
"""Maximum words of a sentence."""
NAMES_NOTHING = re.compile(r"(What|Who|Of|Those|The same|That|It)\b")
CEILINGS = {"banned words": 1, "long sentences": 3, "docstrings that name nothing first": 0}


def docstrings(nodes: list[ast.AST]) -> Iterator[ast.Constant]:
    """Yield all string statements: docstrings, and the texts below constants and fields."""
    for node in nodes:
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement.value


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs, list items and titled sections of a text, each on one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n\s*(?=[|#*-]|\w+:\n)", text)]


def python(text: str, nodes: list[ast.AST]) -> Iterator[str]:
    """Yield comments, and string constants with a blank: docstrings and messages."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    documented = {id(constant) for constant in docstrings(nodes)}
    lists = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr == "split"}
    for node in nodes:
        if id(node) in lists:
            continue  # its words are names
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            # a string of several lines that is no docstring is data
            if id(node) in documented or "\n" not in node.value.strip():
                yield from paragraphs(without_pictures(node.value))


def without_pictures(text: str) -> str:
    """Return a docstring without examples, tables and pictures: indented paragraphs that contain a line of several columns."""
    kept = []
    text = re.sub(r"^ *>>> .*\n(?: *\S.*(?:\n|$))*", "", text, flags=re.MULTILINE)
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        indented = all(line.startswith("    ") for line in paragraph.splitlines())
        if not (indented and re.search(r"\S {3,}\S", paragraph)):
            kept.append(paragraph)
    return "\n\n".join(kept)


def markdown(text: str) -> Iterator[str]:
    """Yield the paragraphs outside code blocks and tables."""
    prose = re.sub(r"```.*?```|^\|[^\n]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from paragraphs(prose)


def broken(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the broken rules of a file, each with the offending text."""
    nodes = list(ast.walk(ast.parse(text))) if name.endswith(".py") else []
    for paragraph in python(text, nodes) if nodes else markdown(text):
        for pattern in banned():
            yield from (("banned words", match[0]) for match in pattern.finditer(paragraph))
        for sentence in re.split(r"(?<=[.!?:])\s+", paragraph):
            if len(sentence.split()) > MAX_WORDS:
                yield "long sentences", sentence
    for node in docstrings(nodes):
        if NAMES_NOTHING.match(opening := str(node.value).strip().partition("\n")[0]):
            yield "docstrings that name nothing first", opening


@cache
def banned() -> list[re.Pattern[str]]:
    lines = (ROOT / "tests/data/prose/banned_words.txt").read_text(encoding="utf-8").splitlines()
    return [re.compile(line.partition("\t")[0], re.IGNORECASE) for line in lines if line[0] != "#"]


@cache
def violations() -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {rule: [] for rule in CEILINGS}
    files = [
        path
        for part in PARTS
        for path in sorted((ROOT / part).rglob("*"))
        if path.suffix in (".py", ".md") and "__pycache__" not in path.parts
    ]
    for path in [*files, *filter(Path.is_file, (ROOT / page for page in PAGES))]:  # some are not distributed
        for rule, text in broken(path.name, path.read_text(encoding="utf-8")):
            texts[rule].append(f"{path.relative_to(ROOT)}: {text}")
    return texts


def words() -> str:
    """Return the words of each page of the manual, largest first, and of all: no code blocks, no generated reference."""
    pages = [page.relative_to(ROOT) for page in (ROOT / "docs").rglob("*.md") if page.parent != ROOT / "docs/reference"]
    texts = {str(page): (ROOT / page).read_text(encoding="utf-8") for page in pages}
    counts = {page: len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) for page, text in texts.items()}
    rows = [*sorted(((count, page) for page, count in counts.items()), reverse=True), (sum(counts.values()), "all")]
    return "\n".join(f"{count:7,} {page}" for count, page in rows)


def main() -> str | None:
    """Return the violations of each rule that has more than its ceiling; None: there are none."""
    risen = {rule: texts for rule, texts in violations().items() if len(texts) > CEILINGS[rule]}
    return "\n".join(f"{rule}: {len(texts)}\n  " + "\n  ".join(texts) for rule, texts in risen.items()) or None


if __name__ == "__main__":
    if sys.argv[1:] == ["--words"]:
        print(words())
    else:
        sys.exit(main())
