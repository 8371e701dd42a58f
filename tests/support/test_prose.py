"""The check of prose, `tox run -e lint`, finds what it is for."""

from support.prose import CEILINGS, MAX_WORDS, broken


def test_each_rule_finds_its_violation() -> None:
    source = '"""What is told of a thing."""\nx = 1  # ' + "word " * (MAX_WORDS + 1)

    assert {rule for rule, _ in broken("a.py", source)} == set(CEILINGS)
    assert not list(broken("a.md", f"A sentence.\n\n```\n{source}\n```\n"))
    picture = '"""A row is a cut.\n\n' + f"    row   {'column   ' * MAX_WORDS}\n" * 2 + '\nA sentence."""'
    assert not list(broken("a.py", picture))
    assert list(broken("a.py", picture.replace("   ", " ")))
