"""Texts of pydantic, which no message to a user has."""

import re

RAW = re.compile(
    r"Input should|Field required|Extra inputs|should (have at|match pattern|be a valid)|[Vv]alidation error|after validation"
    r"|Value error|Assertion failed|nable to (parse|interpret)|Keys should|pydantic"
)
