"""`interstellar`: layers of Interstellar's scheduler (JSON), one convolution in a file, with the sizes of its output."""

from __future__ import annotations

from pathlib import Path

from tilewright.files import read_text
from tilewright.schema.document import FileModel, parse_document, validate
from tilewright.schema.origin import Origin
from tilewright.schema.workload import Layer, Workload
from tilewright_frontends import nests
from tilewright_frontends.nests import Extent, unique_name
from tilewright_frontends.sources import text_of

SUFFIX, SIGN = ".json", '"fmap_width"'


class LayerFile(FileModel):
    """A convolution. `fmap_*` are sizes of the output; the input has what the windows need."""

    fmap_width: Extent
    fmap_height: Extent
    input_fmap_channel: Extent
    output_fmap_channel: Extent
    window_width: Extent
    window_height: Extent
    batch_size: Extent = 1
    stride_width: Extent = 1
    stride_height: Extent = 1


class InterstellarFrontend:
    """A frontend that reads layers of Interstellar's scheduler."""

    def recognises(self, source: str) -> bool:
        """Return whether the file names the size of an output as Interstellar does."""
        text = text_of(source, SUFFIX)
        return text is not None and SIGN in text

    def load(self, source: str) -> Workload:
        """Return the layer, called like its file. Raises InputError."""
        document = parse_document(read_text(source), source=source)
        layer = validate(LayerFile, document)
        name = unique_name(Path(source).stem, set())
        problem = nests.convolution(
            name,
            layer.batch_size,
            1,
            (layer.output_fmap_channel, layer.input_fmap_channel),
            (layer.fmap_height, layer.fmap_width),
            (layer.window_height, layer.window_width),
            (layer.stride_height, layer.stride_width),
            (1, 1),
        )
        origin = Origin.at(document.locate(()))
        return Workload(
            name=name,
            source=f"{Path(source).name}: layer of Interstellar",
            layers=(Layer(problem=problem, origin=origin),),
        )
