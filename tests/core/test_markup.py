"""HTML from templates: texts are never markup, and a template that asks for what is not given is an error."""

import jinja2
import pytest

from tilewright.markup import rendered


def test_texts_are_escaped_and_control_characters_are_shown() -> None:
    assert (
        rendered("tilewright", "text.html.jinja", text="<b>&'\x1b[31m\n") == "<pre>&lt;b&gt;&amp;&#39;\\x1b[31m\n</pre>"
    )


def test_contents_that_are_missing_are_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'text' is undefined"):
        rendered("tilewright", "text.html.jinja")
