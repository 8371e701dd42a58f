"""Mutants: small faults in the code, drawn at random, and whether the tests next to that code find them.

tox run -e mutants -- 200 --seed 0 --record mutants.jsonl

Cosmic Ray makes each fault in the file itself and restores it afterwards. So run this in a copy of the repository, such as
one of `git worktree add --detach ../mutants`. A place in the code is drawn first, then one of the faults that are possible there.
Each area has the same number of mutants. Tests run in their order until one fails; before that they have to pass without a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from cosmic_ray.commands import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec

import tilewright

ROOT = Path(__file__).parents[2]
FAULTS = re.compile(
    r"core/(ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_(Add|FloorDiv)|Div_Mul|FloorDiv_Mul|Mod_FloorDiv)"
    r"|ReplaceComparisonOperator_(Lt|LtE|Gt|GtE|Eq|NotEq)_(Lt|LtE|Gt|GtE|Eq|NotEq)|ReplaceUnaryOperator_Delete_\w+"
    r"|AddNot|Replace(True|False|And|Or|Break|Continue)With\w+|NumberReplacer|ZeroIterationForLoop)"
)
"""Faults that a person could make. Others are types, decorators and exceptions, which the type checker or any import finds."""


@dataclass(frozen=True)
class Tests:
    """Arguments of pytest. `plain`: kernels run as plain Python, since compiling a changed one takes 40 s."""

    arguments: str
    plain: bool = False

    @property
    def command(self) -> str:
        """The command that fails if a test finds a fault."""
        variables = f"NUMBA_DISABLE_JIT={int(self.plain)} PYTHONDONTWRITEBYTECODE=1"
        return f"env {variables} {shlex.quote(sys.executable)} -m pytest -q -x -p no:cacheprovider {self.arguments}"


@dataclass(frozen=True)
class Modules:
    """Modules, by a pattern from the root, and the tests next to them in the order in which they run.

    Before them goes the test of a module itself, if there is one. `{folder}` is the module's folder in its package.
    """

    pattern: str
    tests: tuple[Tests, ...]

    def tests_of(self, module: Path) -> tuple[Tests, ...]:
        """Return the tests of one module."""
        package, *inside = (part for part in module.with_suffix("").parts if part != "plugins")
        nearest = Path("tests", package, *inside[1:-1], f"test_{inside[-1]}.py")
        first, *rest = self.tests
        arguments = first.arguments.format(folder=inside[1])
        if (ROOT / nearest).exists() and str(nearest) not in arguments:
            arguments = f"{nearest} {arguments}"
        return (Tests(arguments, first.plain), *rest)


EXAMPLES = "tests/mappers/test_worked_example.py tests/mappers/test_inherited_bounds.py"
SEARCHES = "tests/mappers/test_recorded_searches.py"
SAMPLES = "tests/mappers/test_proof_samples.py"
NETWORKS = "tests/core/application/run/test_resident_cases.py tests/core/application/run/test_resident.py tests/core/application/api/test_network_fusion.py"
GROUPS = "tests/mappers/fused/test_padding.py tests/mappers/fused/test_arrays.py tests/mappers/fused/test_group.py"
TIMELOOP = " ".join(
    f"tests/costmodels/timeloop/test_{name}.py" for name in ("multicast", "leakage", "cases", "meshes", "groups")
)
LEGALITY = " ".join(
    [
        *(f"tests/core/mapspace/test_{name}.py" for name in ("legality", "group_legality", "candidates")),
        "tests/costmodels/oracle/test_group.py",
    ]
)
AREAS = {
    "optimal": (
        Modules("plugins/mappers/tilewright_mappers/optimal/*.py", (Tests(f"{EXAMPLES} {SEARCHES} {SAMPLES}"),)),
        Modules(
            "plugins/mappers/tilewright_mappers/optimal/kernel/*.py",
            (
                Tests(f"{EXAMPLES} {SEARCHES}", plain=True),
                Tests(SAMPLES),
            ),
        ),
    ),
    "fused": (
        Modules("plugins/mappers/tilewright_mappers/fused/*.py", (Tests(f"{GROUPS} {NETWORKS}"),)),
        Modules("core/tilewright/application/run/resident*.py", (Tests(f"{NETWORKS} {GROUPS}"),)),
    ),
    "timeloop": (Modules("plugins/costmodels/tilewright_costmodels/timeloop/*.py", (Tests(TIMELOOP, plain=True),)),),
    "legality": (
        Modules("core/tilewright/mapspace/*legality.py", (Tests(LEGALITY, plain=True),)),
        Modules("core/tilewright/mapspace/rules/*.py", (Tests(LEGALITY, plain=True),)),
    ),
    "adapters": (Modules("adapters/tilewright_adapters/*/**/*.py", (Tests("tests/adapters/{folder}"),)),),
}


@dataclass(frozen=True)
class Mutant:
    """A fault in a file, and the tests that should find it."""

    area: str
    fault: MutationSpec
    tests: tuple[Tests, ...]

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.fault.module_path}:{self.fault.start_pos[0]}"


def drawn(count: int, seed: int) -> Iterator[Mutant]:
    """Yield different mutants, from all areas in turn; modules count by their bytes."""
    random, before = Random(seed), set[tuple[Path, str, int]]()
    for number in range(count):
        area, parts = list(AREAS.items())[number % len(AREAS)]
        of_file = {
            file: part for part in parts for file in sorted(ROOT.glob(part.pattern)) if file.stat().st_size > 1000
        }
        modules = sorted(of_file)
        while True:
            module = random.choices(modules, [path.stat().st_size for path in modules])[0]
            faults = faults_of(module.relative_to(ROOT))
            place = random.choice(sorted({mutation.start_pos for mutation in faults}))
            fault = random.choice([mutation for mutation in faults if mutation.start_pos == place])
            key = fault.module_path, fault.operator_name, fault.occurrence
            if key not in before:
                break
        before.add(key)
        yield Mutant(area, fault, of_file[module].tests_of(fault.module_path))


@cache
def faults_of(module: Path) -> list[MutationSpec]:
    """Return the faults that can be made in a module, by name."""
    with tempfile.TemporaryDirectory() as folder, use_db(Path(folder, "mutants.sqlite")) as database:
        init([module], database, {})
        faults = [
            mutation
            for item in database.work_items
            for mutation in item.mutations
            if FAULTS.match(mutation.operator_name)
        ]
    return sorted(faults, key=lambda mutation: (mutation.operator_name, mutation.occurrence))


@cache
def seconds_of(tests: Tests) -> float:
    """Return the CPU seconds that tests take without a fault.

    Raises:
        SystemExit: they do not pass.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(shlex.split(tests.command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        raise SystemExit(f"error: without a fault these tests have to pass:\n{tests.command}\n{run.stdout[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def outcome(tests: Tests) -> tuple[str, str]:
    """Return what tests make of the fault in the code, and which one found it.

    They are out of time after 15 CPU seconds (compiled: 100) more than four times what they take without it.
    """
    limit = int(4 * seconds_of(tests) + (15 if tests.plain else 100))
    command = ["sh", "-c", f"ulimit -t {limit}; ulimit -v {16 << 20}; exec {tests.command}"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=10 * limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "out of time", ""
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "out of time", ""
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.MULTILINE)
    return "killed" if process.returncode else "survived", next(iter(failed), "")


def judged(mutant: Mutant) -> dict[str, Any]:
    """Make the fault, run the tests, and restore the file."""
    for tests in mutant.tests:
        seconds_of(tests)
    fault = mutant.fault
    operator = get_operator(fault.operator_name)(**(fault.operator_args or {}))
    record = {"area": mutant.area, "where": mutant.where, "fault": fault.operator_name}
    with use_mutation(fault.module_path, operator, fault.occurrence) as (before, after):
        number = fault.start_pos[0] - 1
        lines = before.splitlines()[number], after.splitlines()[number]
        for tests in mutant.tests:
            state, test = outcome(tests)
            if state != "survived":
                break
    return record | {"outcome": state, "test": test, "lines": [line.strip() for line in lines]}


def main() -> int:
    """Draw mutants and count how many are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", type=int, nargs="*", help="numbers of the mutants to judge; without it all that are drawn"
    )
    parser.add_argument(
        "--record",
        type=Path,
        help="file to which each outcome is appended, as a line of JSON; those in it are not judged again",
    )
    arguments = parser.parse_args()
    records: dict[int, dict[str, Any]] = {}
    record = None if arguments.record is None else arguments.record.absolute()
    if record is not None and record.exists():
        records = {row["number"]: row for row in map(json.loads, record.read_text(encoding="utf-8").splitlines())}
    os.chdir(ROOT)
    if not Path(tilewright.__file__).is_relative_to(ROOT):
        print(f"error: {tilewright.__file__} would be tested, which is not in {ROOT}", file=sys.stderr)
        return 2
    if subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"], stdout=subprocess.PIPE, check=True
    ).stdout:
        print(
            "error: the checkout has changes, and a run that is ended leaves a fault in it; commit them first",
            file=sys.stderr,
        )
        return 2
    for number, mutant in enumerate(drawn(arguments.count, arguments.seed)):
        if number in records or not (arguments.only is None or number in arguments.only):
            continue
        records[number] = {"number": number} | judged(mutant)
        print(*records[number].values(), flush=True)
        if record is not None:
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(records[number]) + "\n")
    counts = Counter((row["area"], row["outcome"]) for row in records.values())
    for (area, state), count in sorted(counts.items()):
        print(f"{area}: {count} {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
