"""A factory in a module that imports what only the search needs."""

import numpy as np
from pydantic import BaseModel

from tilewright_careless.mappers import Good


def make_heavy(options: BaseModel) -> Good:
    assert np.int64 is not None
    return Good()
