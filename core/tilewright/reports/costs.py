"""Figures of what costs energy and cycles: mappings, networks, and points of a space.

A new figure is one entry here: its name, its unit, how to get it, and the views that show it. A subject is the report of a
mapping, or has at least `energy_pj` and `cycles`. A subject may lack other figures.
"""

from tilewright.figures import Figure, Sheet
from tilewright.tables import Column, numbers

COSTS = Sheet(
    Figure("macs", numbers("MACs"), kind=int | None, meaning="Operations; None for a list of layers."),
    Figure("energy_pj", numbers("energy", "pJ", like="energy"), meaning="Energy in pJ; None without a mapping."),
    Figure("cycles", numbers("cycles", like="cycles"), kind=int | None, meaning="Cycles; None without a mapping."),
    Figure("edp", numbers("EDP", "pJ x cycles"), meaning="Product of energy in pJ and cycles; None without a mapping."),
    Figure(
        "utilization",
        numbers("utilization"),
        has_total=False,
        meaning="Fraction of compute units in use, averaged over cycles.",
    ),
    Figure(
        "area_um2",
        numbers("area", "mm2", decimals=4),
        factor=1e-6,
        digits=4,
        is_optional=True,
        meaning="Area of the architecture in um2; None if that of a part is unknown.",
    ),
    *(
        Figure(
            key,
            numbers(name, unit, like=like),
            of=lambda subject, key=key: getattr(getattr(subject, "with_vectors", None), key, None),  # type: ignore[misc]
            is_optional=True,
            kind=kind,
            meaning=f"{meaning} None without vector units.",
        )
        for key, name, unit, like, kind, meaning in (
            ("vector_cycles", "vector cycles", "", "cycles", int | None, "Cycles of the vector layers."),
            ("vector_energy_pj", "vector energy", "pJ", "energy", float | None, "Energy of the vector layers in pJ."),
            ("sequential_cycles", "cycles, in sequence", "", "cycles", int | None, "Cycles of all layers in sequence."),
            ("overlapped_cycles", "cycles, overlapped", "", "cycles", int | None, "Cycles with units in parallel."),
            ("network_energy_pj", "energy, all layers", "pJ", "energy", float | None, "Energy of all layers in pJ."),
        )
    ),
    Figure("pj_per_mac", numbers("energy", "pJ/MAC"), meaning="Energy of an operation in pJ."),
    Figure(
        "limited_by",
        Column("limited by"),
        has_total=False,
        kind=str | None,
        meaning="Limit that binds most cycles; None if the model has no limits.",
    ),
    views={
        # one mapping
        "summary": "area_um2 edp",
        "evaluate": "energy_pj cycles edp:1 utilization:2 limited_by:3",
        "evaluate, rows": "energy_pj cycles edp utilization pj_per_mac limited_by",
        "fuse": "energy_pj cycles edp:1",
        # layers, and networks
        "map": "energy_pj cycles utilization:3 edp:4",
        "map, end": "limited_by:2",
        "json": "cycles energy_pj edp utilization limited_by",
        "csv": "energy_pj cycles edp utilization limited_by",
        "totals": "macs cycles energy_pj edp vector_cycles vector_energy_pj sequential_cycles overlapped_cycles network_energy_pj",
        "vectors": "vector_cycles sequential_cycles overlapped_cycles vector_energy_pj network_energy_pj",
        "passes": "macs:3 cycles energy_pj:2",
        "passes, all": "macs:3 cycles:4 sequential_cycles overlapped_cycles network_energy_pj:2",
        "fused vectors": "network_energy_pj vector_energy_pj vector_cycles sequential_cycles overlapped_cycles",
        "page": "energy_pj cycles edp",
        "page, totals": "energy_pj cycles edp vector_cycles sequential_cycles overlapped_cycles vector_energy_pj network_energy_pj",
        "page, more totals": "area_um2 macs",
        "layers": "energy_pj cycles",
        "graph": "energy_pj cycles:1",
        "steps": "energy_pj cycles edp",
        # fronts and spaces
        "front": "cycles energy_pj edp:2 utilization:3",
        "budget": "cycles energy_pj",
        "explore": "energy_pj:3 cycles:2 edp:4 area_um2:1",
        "explore, layers": "energy_pj cycles utilization",
        "axes": "energy_pj cycles area_um2",
        "space": "area_um2",
    },
)
