"""Tilewright: any frontend, any mapper, any cost model for spatial accelerators.

    import tilewright as tw

    report = tw.map("resnet50", arch="eyeriss")

The names in `__all__` are public. So are `tilewright.plugin`, for plugin authors, and `tilewright.testing`, their
conformance kit. Everything else is private. A name is imported on first access.
"""

from __future__ import annotations

from tilewright.lazy import lazy_exports

TYPE_CHECKING = False  # known to type checkers; importing `typing` would take longer than the rest of this module
if TYPE_CHECKING:
    from tilewright import errors, library
    from tilewright.application.api.certificates import CertificateVerification, verify_certificate
    from tilewright.application.api.comparison import compare
    from tilewright.application.api.comparison_report import ComparisonReport
    from tilewright.application.api.conversion import convert, full_group, full_mapping
    from tilewright.application.api.correlation import correlate
    from tilewright.application.api.correlation_report import CorrelationReport
    from tilewright.application.api.evaluation import EvaluationReport, evaluate
    from tilewright.application.api.front.budgeted import BudgetedNetwork
    from tilewright.application.api.front.report import FrontReport
    from tilewright.application.api.front.searching import front
    from tilewright.application.api.fusion import FusionReport, fuse
    from tilewright.application.api.gain import FusionGain
    from tilewright.application.api.generation.generating import generate
    from tilewright.application.api.generation.report import GenerationReport
    from tilewright.application.api.group_comparison import GroupComparison, compare_groups
    from tilewright.application.api.hardware.calibration import CalibrationReport, calibrate
    from tilewright.application.api.hardware.estimation import ComponentReport, estimate, estimators
    from tilewright.application.api.hardware.exploration import explore, explored
    from tilewright.application.api.hardware.exploration_report import ExplorationReport
    from tilewright.application.api.hardware.fitting import FitReport, fit
    from tilewright.application.api.hardware.machines import new_architecture
    from tilewright.application.api.hardware.spaces import architecture_space
    from tilewright.application.api.load import load
    from tilewright.application.api.mapping import map, space
    from tilewright.application.api.mapping_report import MappingReport
    from tilewright.application.api.network_fusion import NetworkFusion, fuse_network, fusion_gain
    from tilewright.application.api.page.writing import page
    from tilewright.application.api.plotting import plot
    from tilewright.application.api.verification import RecordedReport, Verification, diff_stats, verify
    from tilewright.application.conversion.conversion import Conversion
    from tilewright.application.drawing.diagrams import draw
    from tilewright.application.drawing.drawing import Drawing
    from tilewright.application.exploration.space import ArchitectureSpace
    from tilewright.application.run.network import MappedLayer
    from tilewright.errors import TilewrightError
    from tilewright.mapspace.space import MapSpace
    from tilewright.plugin.mapper import Budget
    from tilewright.plugin.registry import Registry, installed
    from tilewright.plugin.result import Result
    from tilewright.reports import Report
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.constraints import Constraints
    from tilewright.schema.group import GroupMapping
    from tilewright.schema.group.full import FullGroup
    from tilewright.schema.mapped import MappedProblem
    from tilewright.schema.mapped.certificate import Certificate, GroupClaim, LayerClaim, NetworkClaim
    from tilewright.schema.mapping import Mapping
    from tilewright.schema.mapping.full import FullMapping
    from tilewright.schema.problem import Problem
    from tilewright.schema.workload import Workload
    from tilewright.version import __version__

__all__ = [
    "Architecture",
    "ArchitectureSpace",
    "Budget",
    "BudgetedNetwork",
    "CalibrationReport",
    "Certificate",
    "CertificateVerification",
    "ComparisonReport",
    "ComponentReport",
    "Constraints",
    "Conversion",
    "CorrelationReport",
    "Drawing",
    "EvaluationReport",
    "ExplorationReport",
    "FitReport",
    "FrontReport",
    "FullGroup",
    "FullMapping",
    "FusionGain",
    "FusionReport",
    "GenerationReport",
    "GroupClaim",
    "GroupComparison",
    "GroupMapping",
    "LayerClaim",
    "MapSpace",
    "MappedLayer",
    "MappedProblem",
    "Mapping",
    "MappingReport",
    "NetworkClaim",
    "NetworkFusion",
    "Problem",
    "RecordedReport",
    "Registry",
    "Report",
    "Result",
    "TilewrightError",
    "Verification",
    "Workload",
    "__version__",
    "architecture_space",
    "calibrate",
    "compare",
    "compare_groups",
    "convert",
    "correlate",
    "diff_stats",
    "draw",
    "errors",
    "estimate",
    "estimators",
    "evaluate",
    "explore",
    "explored",
    "fit",
    "front",
    "full_group",
    "full_mapping",
    "fuse",
    "fuse_network",
    "fusion_gain",
    "generate",
    "installed",
    "library",
    "load",
    "map",
    "new_architecture",
    "page",
    "plot",
    "space",
    "verify",
    "verify_certificate",
]

__getattr__, __dir__ = lazy_exports(__name__)
