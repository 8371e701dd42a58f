"""The check of prose, `tox run -e lint`, finds what it is for."""

from support.prose import CEILINGS, MAX_WORDS, broken, words


def test_each_rule_finds_its_violation() -> None:
    source = '"""What is told of a thing."""\nx = 1  # ' + "word " * (MAX_WORDS + 1)

    assert {rule for rule, _ in broken("a.py", source)} == set(CEILINGS)
    assert not list(broken("a.md", f"A sentence.\n\n```\n{source}\n```\n"))
    picture = '"""A row is a cut.\n\n' + f"    row   {'column   ' * MAX_WORDS}\n" * 2 + '\nA sentence."""'
    assert not list(broken("a.py", picture))
    assert list(broken("a.py", picture.replace("   ", " ")))


def test_words_are_those_of_written_pages() -> None:
    rows = [line.split() for line in words().splitlines()]
    counts = {page: int(count.replace(",", "")) for count, page in rows}

    assert counts.pop("all") == sum(counts.values())
    assert "docs/design.md" in counts and not [page for page in counts if page.startswith("docs/reference/")]
