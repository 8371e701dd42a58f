"""Sparse architectures of the library: their figures are those of the published runs that they come from."""

from dataclasses import replace

import pytest

from adapters.timeloop.test_sparse import recorded
from tilewright import library
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
