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
    from tilewright.api.certificates import CertificateVerification, verify_certificate
    from tilewright.api.comparison import compare
    from tilewright.api.comparison_report import ComparisonReport
    from tilewright.api.conversion import convert
    from tilewright.api.evaluation import EvaluationReport, evaluate
    from tilewright.api.front.budgeted import BudgetedNetwork
    from tilewright.api.front.report import FrontReport
    from tilewright.api.front.searching import front
    from tilewright.api.fusion import FusionReport, fuse
    from tilewright.api.hardware.calibration import CalibrationReport, calibrate
    from tilewright.api.hardware.estimation import ComponentReport, estimate, estimators
    from tilewright.api.hardware.exploration import explore, explored
    from tilewright.api.hardware.exploration_report import ExplorationReport
    from tilewright.api.hardware.fitting import FitReport, fit
    from tilewright.api.hardware.spaces import architecture_space
    from tilewright.api.load import load
    from tilewright.api.mapping import map, space
    from tilewright.api.mapping_report import MappingReport
    from tilewright.api.network_fusion import FusionGain, NetworkFusion, fuse_network, fusion_gain
    from tilewright.api.page.writing import page
    from tilewright.api.plotting import plot
    from tilewright.api.verification import RecordedReport, Verification, diff_stats, verify
    from tilewright.conversion.conversion import Conversion
    from tilewright.drawing.diagrams import draw
    from tilewright.drawing.drawing import Drawing
    from tilewright.errors import TilewrightError
    from tilewright.exploration.space import ArchitectureSpace
    from tilewright.mapspace.space import MapSpace
    from tilewright.plugin.mapper import Budget
    from tilewright.plugin.registry import Registry, installed
    from tilewright.plugin.result import Result
    from tilewright.run.network import MappedLayer
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.constraints import Constraints
    from tilewright.schema.group import GroupMapping
    from tilewright.schema.mapped import MappedProblem
    from tilewright.schema.mapped.certificate import Certificate
    from tilewright.schema.mapped.fusion import GroupCertificate, NetworkCertificate
    from tilewright.schema.mapping import Mapping
    from tilewright.schema.problem import Problem
    from tilewright.schema.report import Report
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
    "Drawing",
    "EvaluationReport",
    "ExplorationReport",
    "FitReport",
    "FrontReport",
    "FusionGain",
    "FusionReport",
    "GroupCertificate",
    "GroupMapping",
    "MapSpace",
    "MappedLayer",
    "MappedProblem",
    "Mapping",
    "MappingReport",
    "NetworkCertificate",
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
    "convert",
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
    "fuse",
    "fuse_network",
    "fusion_gain",
    "installed",
    "library",
    "load",
    "map",
    "page",
    "plot",
    "space",
    "verify",
    "verify_certificate",
]

__getattr__, __dir__ = lazy_exports(__name__)
