"""Prefill and decoding of language models on five machines: `python -m benchmarks.generation [SECONDS]` prints benchmarks/generation.md's table.

Machines and their assumed vector units are those of `benchmarks.vector`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tilewright as tw
from benchmarks.vector import machines

FILES = Path(__file__).parents[1] / "tests" / "data" / "transformers"
MODELS = ("llama3_8b", "mixtral_8x7b", "mamba_2_8b", str(FILES / "gemma2.json"), str(FILES / "deepseek.json"))
PREFILL, DECODE = 4096, 128


def main(seconds: float) -> None:
    """Print a row for each model and machine. Cycles are millions, energies mJ, of one sequence."""
    print(
        "| model | machine | first token, in sequence | overlapped | a token, in sequence | overlapped | a prompt's token, mJ "
        "| a token, mJ | GB | fits |"
    )
    print(f"| --- | --- |{' ---: |' * 7} --- |")
    for model in MODELS:
        for architecture in machines():
            report = tw.generate(
                model, architecture, prefill=PREFILL, decode=DECODE, objective="cycles", seconds=seconds, progress=False
            )
            _, sequential, overlapped = report.speeds
            first = [one.first_token_cycles for one in (sequential, overlapped)]
            token = [one.token_cycles for one in (sequential, overlapped)]
            numbers = [f"{one / 1e6:,.3f}" if one else "-" for one in (*first, *token)]
            energies = (sequential.prompt_token_pj, sequential.token_pj)
            numbers += [f"{one * 1e-9:,.3f}" if one else "-" for one in energies]
            fits = {None: "not stated", True: "yes", False: "no"}[report.memory.fits]
            row = (f"{report.memory.total_bytes / 1e9:,.3f}", fits)
            print(f"| `{Path(model).stem}` | `{architecture.name}` | {' | '.join((*numbers, *row))} |", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 4)
