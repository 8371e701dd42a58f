"""Every reader with good inputs, and what may come of bad ones: something sound, or one message with exit code 2."""

import io
import json
import math
import resource
import shutil
import signal
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import numpy as np
from onnx import helper

import tilewright as tw
from support import DATA, EXAMPLE_FILES, ROOT
from support.exported import node, program
from support.messages import RAW
from support.mutations import mutated_bytes, mutated_model, mutated_text, mutated_yaml
from support.networks import drawn as random_network
from support.onnx_models import model_of
from support.recorded import maestro
from support.sparse_triples import SHAPES, drawn
from support.templates import INSIDE, hostile_template, read_template
from tilewright import library
from tilewright.application.api.hardware.spaces import SpaceReport
from tilewright.errors import TilewrightError
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec
from tilewright.schema.document import FileModel
from tilewright.schema.mapped import BoundMapping
from tilewright.schema.mapped.certificate import Certificate
from tilewright.testing.corpus import SAMPLES
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

SECONDS = 5
MEMORY = 2**30
SMALL = 3_600
"""Characters of what is damaged: of small inputs more are read in the same time, and more of them where it matters."""
Files = Mapping[str, bytes]
"""Name -> content."""
Mutator = Callable[[Random, str], str]


@dataclass(frozen=True)
class Reader:
    """`read` takes the paths of one of the `inputs`; `bytes_` changes binary files instead of texts."""

    inputs: Sequence[Files]
    read: Callable[[list[Path]], object]
    mutators: tuple[Mutator, ...] = (mutated_text, mutated_yaml)
    binary: Callable[[Random, bytes], bytes] | None = None

    def mutated(self, random: Random) -> Files:
        """One of the inputs with a fault or some, mostly in one file."""
        files = dict(random.choice(self.inputs))
        for name in random.sample(list(files), min(len(files), random.choice((1, 1, 1, 2)))):
            if self.binary is not None:
                files[name] = self.binary(random, files[name])
            else:
                text = random.choice(self.mutators)(random, files[name].decode())
                files[name] = text.encode(errors="surrogatepass")
        return files


class Slow(BaseException):
    """More CPU time than a reader may take."""


def complaint(reader: Reader, files: Files, folder: Path) -> str | None:
    """Return an error in a reader's handling of these files, or None."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    late: list[Slow] = []
    try:
        with _limits(late):
            reader.read([folder / name for name in files])
        if late:  # what was running let it pass
            raise late[0]
    except TilewrightError as error:
        if late:
            return f"Slow: {late[0]}"
        text = str(error)
        if error.exit_code != 2:
            return f"exit code {error.exit_code}: {text[:300]}"
        if len(text) > 22_000 or not text.replace("\n", "").isprintable():
            return f"a message of {len(text)} characters: {text[:100]!r}"
        if raw := RAW.search(text):
            return f"a text of pydantic: {raw[0]}"
    except (Exception, Slow) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]} ({Path(last.filename).name}:{last.lineno})"
    return None


@contextmanager
def _limits(late: list[Slow]) -> Iterator[None]:
    def slow(*_: object) -> NoReturn:
        late.append(Slow(f"more than {SECONDS} s"))
        raise late[0]

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data() + MEMORY, hard))
    before = signal.signal(signal.SIGPROF, slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data() -> int:
    """Bytes of data that this process has."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmData:")[2].split()[0])


def _schema(kind: Any, paths: list[Path]) -> None:
    """Read a document, write it, and read it back."""
    model: FileModel = tw.load(paths[0], kind)
    text = model.to_yaml()
    again = type(model).from_yaml(text)
    assert again == model or ".nan" in text and again.to_yaml() == text  # nothing equals what is no number
    if isinstance(model, BoundMapping) or hasattr(model, "architecture") and hasattr(model, "mapping"):
        _evaluated(InputSet(model.problem, model.architecture, model.mapping))  # type: ignore[attr-defined]


def _certificate(paths: list[Path]) -> None:
    """Read a certificate, print it, write it, and read it back."""
    certificate: Certificate[Any] = Certificate.from_file(paths[0])
    text = certificate.to_yaml()
    assert Certificate.from_yaml(text).to_yaml() == text and certificate.claim.names[0] in str(certificate)


def _space(paths: list[Path]) -> None:
    """Build the first points of a space, write them, and read them back."""
    space = tw.architecture_space(paths[0])
    for point in SpaceReport.of(space, 3).points:
        assert point.architecture is not None or point.reasons
    text = space.to_yaml()
    assert type(space).from_yaml(text) == space or ".nan" in text  # nothing equals what is no number


def _spaces() -> list[Files]:
    texts = [library.text(name) or "" for name in library.names("spaces")]
    return [{"space.yaml": text.encode()} for text in texts if len(text) < SMALL]


def _archives() -> list[Files]:
    """One exported program, compressed in each way that zip files know."""
    shapes = {"input": (2, 7, 5), "weight": (3, 5), "out": (2, 7, 3)}
    data = program(["input", "weight"], shapes, [node("aten.linear.default", "out", input="%input", weight="%weight")])
    files: list[Files] = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", method) as archive:
            archive.writestr("linear/models/model.json", json.dumps(data))
        files.append({"linear.pt2": content.getvalue()})
    return files


def _adapter(name: str, paths: list[Path]) -> None:
    """Check that the result is legal data, that mappings have a cost, and that every adapter can check it."""
    inputs = installed().make(AdapterSpec, name).parse(paths)
    for part in ("problem", "architecture", "mapping", "constraints"):
        value = getattr(inputs, part)
        if value is not None:
            assert type(value).from_yaml(value.to_yaml()) == value, part
    _evaluated(inputs)


def _evaluated(inputs: InputSet) -> None:
    """No figure that is valid is no number."""
    if inputs.problem is None or inputs.architecture is None or inputs.mapping is None:
        return
    report = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    assert not report.valid or all(
        value is not None and math.isfinite(value) for value in (report.energy_pj, report.cycles, report.edp)
    )


def _workload(paths: list[Path]) -> None:
    workload = tw.load(str(paths[0]), "workload")
    assert workload.macs >= 0 and len(workload.distinct()) <= len(workload.layers)


def _formula(paths: list[Path]) -> None:
    problem = tw.load(paths[0].read_text(errors="replace"), "problem")
    assert tw.load(str(problem), "problem").content_key == problem.content_key


def _texts(folder: Path, *patterns: str) -> list[Files]:
    return [{path.name: path.read_bytes()} for pattern in patterns for path in sorted(folder.glob(pattern))]


def _rendered(name: str) -> list[Files]:
    """Small mappings as this adapter writes them."""
    adapter, files = installed().make(AdapterSpec, name), list[Files]()
    for sample in SAMPLES:
        for mapping in sample.batch(40, seed=1):
            inputs = InputSet(sample.problem, sample.architecture, mapping)
            if len(files) < 8 and adapter.expressible(inputs):
                files.append({file: text.encode() for file, text in adapter.render(inputs).items()})
    return files


def _sparse(name: str | None) -> list[Files]:
    """Return small sparse triples as an adapter writes them; None: architectures in files of their own."""
    files, seed = list[Files](), 0
    while len(files) < 8:
        triple = drawn(Random(str(seed)), 60)
        seed += 1
        if triple is None or not triple[1].sparse_parts:
            continue
        if name is None:
            files.append({"architecture.yaml": triple[1].to_yaml().encode()})
        elif (adapter := installed().make(AdapterSpec, name)).expressible(inputs := InputSet(*triple)):
            files.append({file: text.encode() for file, text in adapter.render(inputs).items()})
    return files


def _problems_with_data(*, file: bool) -> list[Files]:
    """Return problems with actual data: packed positions, or the path of a NumPy file next to them."""
    files, content = list[Files](), io.BytesIO()
    np.save(content, np.eye(4))
    roles = {"A": "input", "B": "weight", "Z": "output"}
    for shape in SHAPES[0], SHAPES[3]:
        tensors: list[dict[str, Any]] = [
            {"name": name, "role": roles[name], "projection": ranks} for name, ranks in shape.items()
        ]
        sizes = {name: 4 for ranks in shape.values() for name in ranks}
        document = {"name": "p", "dimensions": sizes, "tensors": tensors}
        tensors[1]["density"] = {"data": "weights.npy" if file else np.eye(4)}
        text = json.dumps(document) if file else tw.Problem.model_validate(document).to_yaml()
        files.append({"problem.yaml": text.encode()} | ({"weights.npy": content.getvalue()} if file else {}))
    return files


def _own(kind: str) -> list[Files]:
    folders = {"architecture": "architectures", "constraints": "constraints", "workload": "workloads"}
    library = ROOT / "core/tilewright/library"
    sources = [files for files in _texts(library / folders.get(kind, "none"), "*.yaml") if _size(files) < SMALL]
    marks = {"problem": "tensors:", "workload": "layers:", "architecture": "clusters:", "mapping": "entries:"}
    sources += [
        files
        for files in _texts(EXAMPLE_FILES, "*.yaml")
        if marks.get(kind, "?").encode() in next(iter(files.values()))
    ]
    for sample in SAMPLES[:4]:
        mapping = sample.batch(1)[0]
        objects = {"problem": sample.problem, "architecture": sample.architecture, "mapping": mapping}
        if kind in objects:
            sources.append({f"{kind}.yaml": objects[kind].to_yaml().encode()})
        if kind == "mapped":
            report = tw.map(
                sample.problem, sample.architecture, mapper="random", evaluations=50, cache=False, progress=False
            )
            with tempfile.TemporaryDirectory() as folder:
                report.save(folder)
                sources += _texts(Path(folder), "0*.yaml")
    return sources


def _certificates() -> list[Files]:
    """Return certificates of small problems whose spaces are enumerated."""
    files = list[Files]()
    for formula in FORMULAS[1:3]:
        report = tw.map(formula, "union_edge", mapper="exhaustive", cache=False, progress=False)
        (certificate,) = [report.certificate(layer.name) for layer in report.layers]
        assert certificate is not None
        files.append({"certificate.yaml": certificate.to_yaml().encode()})
    return files


def _size(files: Files) -> int:
    return sum(map(len, files.values()))


def _models() -> list[Files]:
    node = helper.make_node
    weights = {"w": np.zeros((4, 3, 3, 3), np.float32), "v": np.zeros((4, 10), np.float32), "s": np.array([2, -1])}
    convolutional = [
        node("Conv", ["x", "w"], ["a"], strides=[1, 2], dilations=[1, 1], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]), node("GlobalAveragePool", ["b"], ["c"]), node("Flatten", ["c"], ["d"]),
        node("Gemm", ["d", "v"], ["y"]),
    ]  # fmt: skip
    shaped = [
        node("Shape", ["x"], ["i"]), node("Gather", ["i", "z"], ["j"]), node("Unsqueeze", ["j", "z1"], ["k"]),
        node("Concat", ["k", "m"], ["l"], axis=0), node("Reshape", ["x", "l"], ["r"]), node("MatMul", ["r", "w"], ["y"]),
    ]  # fmt: skip
    numbers = {"z": np.array(0), "z1": np.array([0]), "m": np.array([-1]), "w": np.zeros((36, 5), np.float32)}
    product = [node("Einsum", ["x", "u"], ["y"], equation="bij,bjk->bik"), node("Add", ["y", "y"], ["q"])]
    models = [
        model_of(convolutional, {"x": (2, 3, 8, 8)}, "y", constants=weights),
        model_of(shaped, {"x": ("batch", 4, 9)}, "y", constants=numbers),
        model_of(product, {"x": (2, 3, 4), "u": (2, 4, 5)}, "q"),
        *(random_network(Random(seed)) for seed in range(12)),
    ]
    return [{"m.onnx": model.SerializeToString()} for model in models]


def _zigzag() -> list[Files]:
    folder = DATA / "hostile"
    files = {name: (folder / name).read_bytes() for name in ("accelerator.yaml", "workload.yaml", "mapping.yaml")}
    return [files | {"mapping.yaml": files["mapping.yaml"].replace(b"M, 0", b"M, 1")}, *_rendered("zigzag")]


def _accelforge() -> list[Files]:
    folder = DATA / "hostile" / "af"
    data = {path.name: path.read_bytes() for path in folder.iterdir()}
    text = b"{% set BITS = 16 %}\n" + data["arch.yaml"].replace(
        b"&id001 inf, throughput: *id001", b"1, throughput: inf"
    )
    return [data | {"arch.yaml": text.replace(b"size: 1536", b"size: {{BITS}} * 96")}, *_rendered("accelforge")]


FORMULAS = [
    "O[n,k,p,q] += I[n,c,2p+r,2q+s] * W[k,c,r,s]; n=1 k=256 c=128 p=56 q=56 r=3 s=3",
    "nk,km->nm; n=4 k=5 m=6", "Z[] += A[k] * B[k]; k=3", "Y[i,j] += T[i,k,l] * B[k,j] * C[l,j]; i=4, j=3, k=2, l=5",
]  # fmt: skip
LIBCONFIG = """
# a comment
arch : {
  arithmetic : { name = "MACs"; instances = 8; word_bits = 8; meshX = 4; };  // another
  storage = (
    { name = "Regs"; entries = 16; instances = 8; meshX = 4; word_bits = 8; },
    { name = "Buffer"; sizeKB = 1; instances = 1; word-bits = 8; block-size = 0x4, },
    { name = "DRA" "M"; technology = "DRAM"; instances = 1; word_bits = 8; bandwidth = 4.0; }
  );
};
problem : { R = 3; S = 1; P = 4; Q = 2; C = 2L; K = 4; N = 1; Wstride = 2; };
mapping = (
  { target = "Regs"; type = "datatype"; keep = [ "Weights" ]; bypass = [ "Inputs", "Outputs" ]; },
  { target = 0; type = "temporal"; factors = "R3 C2"; permutation = "RC SPQKN"; },
  { target = 1; type = "spatial"; factors = "K4 Q2"; permutation = "KQ RSPCN"; split = 1; },
  { target = 2; type = "temporal"; factors = "P=4"; permutation = "PQKRSCN"; }
);
mapspace = { constraints = "none"; constraints_none = ( ); };
/* over
   and out */
"""


def _compiled() -> None:
    """Compile the kernels that reading needs, which takes longer than the limit of a reader."""
    for factors in ("perfect", "ragged"):
        tw.map(FORMULAS[1], "eyeriss", factors=factors, mapper="random", evaluations=50, cache=False, progress=False)


@cache
def readers() -> dict[str, Reader]:
    """By name."""
    _compiled()
    table = {kind: Reader(_own(kind), partial(_schema, kind if kind != "mapped" else "mapping")) for kind in KINDS}
    table["certificate"] = Reader(_certificates(), _certificate)
    for name in ("tilewright", "timeloop", "timeloop_v4", "loopnest", "union"):
        table[f"{name} files"] = Reader(_rendered(name), partial(_adapter, name))
    for name in SPARSE:
        table[f"sparse {name}"] = Reader(_sparse(name), partial(_adapter, name))
    table["sparse problem"] = Reader(_problems_with_data(file=False), partial(_schema, "problem"))
    table["sparse data"] = Reader(_problems_with_data(file=True), partial(_schema, "problem"), binary=mutated_bytes)
    table["sparse architecture"] = Reader(_sparse(None), partial(_schema, "architecture"))
    recorded = [files for files in _texts(DATA / "timeloop/inputs", "*.yaml") if _size(files) < SMALL]
    table["timeloop inputs"] = Reader([*recorded, {"old.cfg": LIBCONFIG.encode()}], partial(_adapter, "timeloop"))
    figures = [{name: (EXAMPLE_FILES / name).read_bytes()} for name in sorted(FIGURES)]
    table["union figures"] = Reader(figures, partial(_adapter, "union"))
    theirs = [
        {"m.m": case["mapping_file"].encode(), "h.m": case["hardware_file"].encode()}
        for case in maestro.load("cases")[::25]
    ]
    table["maestro files"] = Reader(theirs, partial(_adapter, "maestro"), (mutated_text,))
    table["zigzag files"] = Reader(_zigzag(), partial(_adapter, "zigzag"))
    table["accelforge files"] = Reader(_accelforge(), partial(_adapter, "accelforge"))
    table["einsum"] = Reader([{"formula": formula.encode()} for formula in FORMULAS], _formula, (mutated_text,))
    table["scalesim"] = Reader(_texts(DATA / "scalesim", "*.csv"), _workload, (mutated_text,))
    table["comet"] = Reader(_texts(DATA / "comet", "*.ta"), _workload, (mutated_text,))
    for name in ("dmazerunner", "interstellar", "transformers"):
        table[name] = Reader(_texts(DATA / name, "*.json"), _workload)
    table["onnx"] = Reader(_models(), _workload, binary=mutated_model)
    table["space"] = Reader(_spaces(), _space)
    table["pt2"] = Reader(_archives(), _workload, binary=mutated_bytes)
    small = [files for files in _texts(DATA / "mlir", "*.mlir") if _size(files) < 8_000]
    table["mlir"] = Reader(small, _workload, (mutated_text,))
    table["templates"] = Reader([INSIDE], read_template, (mutated_text, hostile_template, hostile_template))
    return table


SPARSE = ("timeloop", "timeloop_v4")
KINDS = ("problem", "workload", "architecture", "mapping", "mapped", "constraints")
FIGURES = ("union_figure_5.yaml", "union_figure_7.yaml", "union_figure_9a.yaml", "union_figure_9b.yaml")
NAMES = (
    *KINDS, "certificate", "tilewright files", "timeloop files", "timeloop_v4 files", "loopnest files", "union files", "timeloop inputs",
    "union figures", "maestro files", "zigzag files", "accelforge files", "einsum", "scalesim", "comet", "dmazerunner", "interstellar",
    "transformers", "onnx", "space", "pt2", "mlir", "templates",
    *(f"sparse {name}" for name in (*SPARSE, "problem", "data", "architecture")),
)  # fmt: skip
