"""Matrix products on 128 x 128 lanes: SCALE-Sim's cycles with stationary weights and inputs, and those of a TPU v4."""

import pytest

from support.pipelined import MODEL
from support.tpu import ARRAYS, mapping_of, problem_of, scale_sim, tpu


@pytest.mark.parametrize(
    ("sizes", "stationary", "cycles"),
    [
        # recorded (yutation/SCALE-SIM_Validation, COMPUTE_REPORT.csv and COMPUTE_REPORT_is.csv), which are one less
        ((128, 128, 128), "B", 509),
        ((256, 128, 128), "B", 637),
        ((256, 128, 128), "A", 1019),
        ((896, 256, 512), "A", 17863),
        ((128, 768, 896), "B", 21419),
    ],
)
def test_one_array_equals_scale_sim(sizes: tuple[int, int, int], stationary: str, cycles: int) -> None:
    named = dict(zip("MNK", sizes, strict=True))
    report = MODEL.bind(problem_of(named), scale_sim()).explain(mapping_of(named, stationary=stationary))
    assert (report.reasons, report.cycles) == ((), cycles + 1)


def test_a_start_comes_on_top_of_the_run() -> None:
    sizes = {"M": 128, "N": 640, "K": 256}
    mapping, problem, slow = mapping_of(sizes, ARRAYS), problem_of(sizes), tpu().replace({"compute.start_cycles": 0})
    reports = [MODEL.bind(problem, machine).explain(mapping) for machine in (slow, tpu())]
    # 5 x 2 tiles of 128 x 128 on four arrays are three steps; then come the words of A, B and Z
    words = 128 * 256 + 256 * 640 + 128 * 640
    assert [report.cycles for report in reports] == [-(-(3 * 129 * 570 + words) // 570) + start for start in (0, 500)]
