"""Parts of Timeloop's inputs."""

SHAPE = """problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: true}
  instance: {M: 8, N: 4, K: SIZE}
"""
"""A matrix product, whose size K is filled in."""
