"""Mutants: small faults in the code, drawn at random, and whether the tests next to that code find them.

tox run -e mutants -- 200 --seed 0 --record mutants.jsonl

Cosmic Ray makes each fault in the file itself and restores it afterwards. So run this in a copy of the repository, such as
one of `git worktree add --detach ../mutants`. A place in the code is drawn first, then one of the faults that are possible there.
Each area has the same number of mutants, and the default tier of its tests. Tests of compiled areas run as plain Python.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).parents[2]
FAULTS = re.compile(
    r"core/(ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_(Add|FloorDiv)|Div_Mul|FloorDiv_Mul|Mod_FloorDiv)"
    r"|ReplaceComparisonOperator_(Lt|LtE|Gt|GtE|Eq|NotEq)_(Lt|LtE|Gt|GtE|Eq|NotEq)|ReplaceUnaryOperator_Delete_\w+"
    r"|AddNot|Replace(True|False|And|Or|Break|Continue)With\w+|NumberReplacer|ZeroIterationForLoop)"
)
"""Faults that a person could make. Others are types, decorators and exceptions, which the type checker or any import finds."""


@dataclass(frozen=True)
class Area:
    """Modules, by patterns from the root, and the tests next to them. `plain`: kernels are not compiled."""

    modules: tuple[str, ...]
    tests: str
    plain: bool = False


AREAS = {
    "optimal": Area(
        ("plugins/mappers/tilewright_mappers/optimal/**/*.py",),
        "tests/mappers/test_worked_example.py tests/mappers/test_inherited_bounds.py tests/mappers/test_proof_samples.py",
    ),
    "fused": Area(
        ("core/tilewright/run/fused_*.py", "core/tilewright/run/resident*.py"),
        "tests/core/run/test_resident.py tests/core/run/test_fused_group.py tests/core/run/test_fused_arrays.py"
        " tests/core/run/test_fused_padding.py tests/core/api/test_network_fusion.py",
    ),
    "timeloop": Area(
        ("plugins/costmodels/tilewright_costmodels/timeloop/*.py",),
        "tests/costmodels/timeloop/test_cases.py tests/costmodels/timeloop/test_multicast.py",
        plain=True,
    ),
    "legality": Area(
        ("core/tilewright/mapspace/*legality.py", "core/tilewright/mapspace/rules/*.py"),
        "tests/core/mapspace/test_legality.py tests/costmodels/oracle/test_group.py",
    ),
    "adapters": Area(("adapters/tilewright_adapters/*/**/*.py",), "tests/adapters/{folder}"),
}


@dataclass(frozen=True)
class Mutant:
    """A fault in a file, and the tests that should find it."""

    area: str
    fault: MutationSpec
    tests: str
    plain: bool

    @property
    def command(self) -> str:
        """The command that fails if a test finds the fault."""
        compiled = f"NUMBA_DISABLE_JIT={int(self.plain)}"
        return f"env {compiled} {shlex.quote(sys.executable)} -m pytest -q -x -p no:cacheprovider {self.tests}"


def drawn(count: int, seed: int) -> Iterator[Mutant]:
    """Yield mutants, from all areas in turn; modules count by their lines."""
    random = Random(seed)
    for number in range(count):
        name, area = list(AREAS.items())[number % len(AREAS)]
        modules = sorted(each for pattern in area.modules for each in ROOT.glob(pattern) if each.stat().st_size > 1000)
        module = random.choices(modules, [each.stat().st_size for each in modules])[0]
        with tempfile.TemporaryDirectory() as folder, use_db(Path(folder, "mutants.sqlite")) as database:
            init([module.relative_to(ROOT)], database, {})
            faults = [
                each for item in database.work_items for each in item.mutations if FAULTS.match(each.operator_name)
            ]
        place = random.choice(sorted({each.start_pos for each in faults}))
        fault = random.choice(
            sorted((each for each in faults if each.start_pos == place), key=lambda each: each.operator_name)
        )
        tests = (
            area.tests.format(folder=module.relative_to(ROOT / "adapters/tilewright_adapters").parts[0])
            if "{" in area.tests
            else area.tests
        )
        yield Mutant(name, fault, tests, area.plain)


def outcome(mutant: Mutant, seconds: float) -> tuple[str, str]:
    """Return what the tests make of a mutant (killed, survived, out of time), and its difference."""
    result = mutate_and_test([mutant.fault], mutant.command, seconds)
    if result.test_outcome is None:
        return "no fault", ""
    late = result.output == "timeout"
    return "out of time" if late else result.test_outcome.value, result.diff or ""


def main() -> int:
    """Draw mutants and count how many are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="mutants of this seed that are left out")
    parser.add_argument("--seconds", type=float, default=300, help="limit for the tests of one mutant")
    parser.add_argument("--record", type=Path, help="file to which each outcome is appended, as a line of JSON")
    arguments = parser.parse_args()
    record = None if arguments.record is None else arguments.record.absolute()
    os.chdir(ROOT)
    if subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"], stdout=subprocess.PIPE, check=True
    ).stdout:
        print(
            "error: the checkout has changes, and a run that is ended leaves a fault in it; commit them first",
            file=sys.stderr,
        )
        return 2
    counts = Counter[tuple[str, str]]()
    for number, mutant in enumerate(drawn(arguments.count, arguments.seed)):
        if number < arguments.first:
            continue
        found, difference = outcome(mutant, arguments.seconds)
        counts[mutant.area, found] += 1
        where = f"{mutant.fault.module_path}:{mutant.fault.start_pos[0]}"
        print(f"{number} {mutant.area} {where} {mutant.fault.operator_name}: {found}", flush=True)
        if record is not None:
            with record.open("a", encoding="utf-8") as file:
                told = {"number": number, "area": mutant.area, "where": where, "outcome": found}
                file.write(json.dumps(told | {"difference": difference}) + "\n")
    for (area, found), count in sorted(counts.items()):
        print(f"{area}: {count} {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
