"""CACTI as a program: AccelForge's own figures, what lies beside the arrays that it takes, and every way in which it fails."""

import pytest

from support import fake_cacti
from tilewright.errors import PluginError
from tilewright.plugin import Estimate, Reason
from tilewright_estimators import CactiOptions
from tilewright_estimators.arithmetic import address_generator, aladdin
from tilewright_estimators.cacti import CactiEstimator

ARRAY: dict[str, float] = {"size_bits": 2**15, "width_bits": 32}


def asked(
    component: str, action: str, node: float, sizes: dict[str, float], behaviour: str = "good"
) -> Estimate | Reason:
    options = CactiOptions(program=fake_cacti.program(behaviour), seconds=2 if behaviour == "slow" else 60)
    return CactiEstimator(options).estimate(component, sizes, action, node)


def told(component: str, action: str, node: float, sizes: dict[str, float]) -> Estimate:
    answer = asked(component, action, node, sizes)
    assert isinstance(answer, Estimate), answer
    return answer


@pytest.mark.parametrize(
    ("node", "bits", "width", "banks", "ports", "read", "write", "area"),
    [
        (65, 2**20, 1024, 32, 1, 90.5643 / 64, 91.2235 / 64, 6.85745e6),
        (65, 192, 16, 1, 1, 0.0227339, 0.0315548, 387.366),
        (65, 3072, 56, 1, 1, 0.040153, 0.0623557, 3534.39),
        (65, 256, 16, 1, 1, 0.0262474, 0.0372873, 456.134),
        (16, 524288, 725, 2, 2, 0.0829488, 0.0903439, None),
        (16, 65536, 256, 1, 1, 0.00964559, 0.0206884, None),
        (16, 262144, 512, 8, 1, 0.0668197, 0.0687309, None),
        (16, 24576, 157, 1, 1, 0.00707477, 0.013827, None),
    ],
)
def test_eyeriss_and_simba_as_accelforge_has_them(
    node: float, bits: int, width: int, banks: int, ports: int, read: float, write: float, area: float | None
) -> None:
    """Per bit, to the digits that its tests expect."""
    sizes: dict[str, float] = {"size_bits": bits, "width_bits": width, "banks": banks, "ports": ports}
    reading, writing = (told("smart_buffer", action, node, sizes) for action in ("read", "write"))

    assert f"{reading.energy_pj / width:.5g}" == f"{read:.5g}" and f"{writing.energy_pj / width:.5g}" == f"{write:.5g}"
    assert reading.energy_pj / width == pytest.approx(read, rel=6e-6)
    assert area is None or reading.area_um2 == pytest.approx(area, rel=2e-6)


def test_the_exercises_buffer() -> None:
    array = told("sram", "read", 45, {"size_bits": 2048 * 256, "width_bits": 256})

    assert array.energy_pj == pytest.approx(51.7987) and array.area_um2 == pytest.approx(198942)
    assert array.accuracy.error == "none against CACTI"


def test_a_smart_buffer_is_its_array_with_an_address_generator() -> None:
    sizes: dict[str, float] = {"size_bits": 524288, "width_bits": 64}
    array, buffer = told("sram", "read", 45, sizes), told("smart_buffer", "read", 45, sizes)
    beside = aladdin(45, address_generator(8192))

    assert buffer.energy_pj == pytest.approx(array.energy_pj + beside.energy_pj)
    assert array.area_um2 is not None and buffer.area_um2 == pytest.approx(array.area_um2 + beside.area_um2)


def test_what_it_does_not_take_follows_by_rules_and_says_so() -> None:
    least, small = (told("sram", "read", 65, {"size_bits": bits, "width_bits": 32}) for bits in (2048, 512))
    between = told("sram", "read", 38.5, {"size_bits": 524288, "width_bits": 64})
    ends = [told("sram", "read", node, {"size_bits": 524288, "width_bits": 64}).energy_pj for node in (32, 45)]

    assert small.energy_pj == pytest.approx(least.energy_pj * 0.25**0.78)
    assert between.energy_pj == pytest.approx(sum(ends) / 2)
    assert {each.accuracy.error[:12] for each in (small, between)} == {"extrapolated"} and least.accuracy.error[
        :4
    ] == "none"


@pytest.mark.parametrize(
    ("sizes", "node", "said"),
    [
        ({"size_bits": 2**15, "width_bits": 32, "banks": 3}, 45, "3 banks"),
        ({"size_bits": 2**15, "width_bits": 32, "ports": 3}, 45, "3 ports"),
        ({"size_bits": 2**40, "width_bits": 32}, 45, "expected one row to 268,435,456 bytes"),
        ({"size_bits": 2**15, "width_bits": 32}, 130, "130 nm; expected 7 to 90 nm"),
    ],
)
def test_what_is_beyond_is_refused(sizes: dict[str, float], node: float, said: str) -> None:
    answer = asked("sram", "read", node, sizes)

    assert isinstance(answer, Reason) and said in answer.message


def test_what_it_cannot_build_is_refused_in_its_own_words() -> None:
    answer = asked("sram", "read", 45, ARRAY, "refusing")

    assert isinstance(answer, Reason) and "no valid tag organizations" in answer.message


@pytest.mark.parametrize(("behaviour", "said"), [("slow", "longer than 2 s"), ("garbled", "table cannot be read")])
def test_a_program_that_fails_is_told(behaviour: str, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        asked("sram", "read", 45, ARRAY, behaviour)


def test_a_program_that_is_not_there_is_told_with_what_to_type() -> None:
    with pytest.raises(PluginError, match="no program nowhere") as told:
        CactiEstimator(CactiOptions(program="nowhere")).estimate(
            "sram", {"size_bits": 2**15, "width_bits": 32}, "read", 45
        )

    assert told.value.hint == "--estimator-option program=PATH"
