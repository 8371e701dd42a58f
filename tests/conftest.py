"""Tests of plugins whose packages have an environment of their own are collected where those are installed."""

import importlib.util

ZIGZAG = importlib.util.find_spec("zigzag") is not None
collect_ignore = [] if ZIGZAG else ["costmodels/zigzag", "adapters/zigzag/test_program.py"]


def pytest_report_header() -> str:
    return (
        "zigzag: installed" if ZIGZAG else "zigzag: not installed, so not tested here; `tox run -e py311-zigzag` does"
    )
