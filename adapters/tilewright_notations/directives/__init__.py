"""Directives: the data-centric notation of mappings (MAESTRO, Kwon et al., MICRO 2019).

Directives express mappings that tiles of a loop nest cannot: overlapping windows and diagonals. They are therefore a
second notation next to `Mapping`. Adapters read and write them, and cost models may accept them directly.
"""

from tilewright_notations.directives.layer import FILTER as FILTER
from tilewright_notations.directives.layer import INPUT as INPUT
from tilewright_notations.directives.layer import NEEDED as NEEDED
from tilewright_notations.directives.layer import OUTPUT as OUTPUT
from tilewright_notations.directives.layer import WINDOWS as WINDOWS
from tilewright_notations.directives.layer import DirectiveHardware as DirectiveHardware
from tilewright_notations.directives.layer import DirectiveLayer as DirectiveLayer
from tilewright_notations.directives.layer import LayerType as LayerType
from tilewright_notations.directives.layer import Map as Map
from tilewright_notations.directives.program import DirectiveProgram as DirectiveProgram
