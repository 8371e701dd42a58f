"""Public module for third parties: everything that a plugin names, registers or implements.

Names are imported at first use, so that listing plugins loads no NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.lazy import lazy_exports

if TYPE_CHECKING:
    from tilewright.errors import Reason, Verdict
    from tilewright.mapspace.arrangements import arrangements, count_uneven
    from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch, tile_words
    from tilewright.mapspace.candidates import Candidates
    from tilewright.mapspace.legality import legal, legality, memory_table
    from tilewright.mapspace.skeleton import Skeleton
    from tilewright.plugin.adapter import (
        HARDWARE_ATTRIBUTES,
        Adapter,
        EdgeReader,
        InputSet,
        LayerReader,
        NotationTable,
        RecordedFigure,
        ReportReader,
    )
    from tilewright.plugin.capabilities import Capabilities
    from tilewright.plugin.composed import ComposedModel, CycleLimit
    from tilewright.plugin.conventions import TOPICS
    from tilewright.plugin.costmodel import (
        BatchEvaluator,
        Bounder,
        CandidateEvaluator,
        CostModel,
        Costs,
        DirectiveModel,
        Evaluator,
        GroupModel,
        Relaxable,
        Relaxation,
        ScalarEvaluator,
        VectorModel,
    )
    from tilewright.plugin.counts import AccessBatch, CountingEvaluator
    from tilewright.plugin.estimator import COMPONENTS, Accuracy, Attribute, Estimate, Estimator
    from tilewright.plugin.frontend import Algorithm, Frontend
    from tilewright.plugin.group_reports import GroupRow, group_report
    from tilewright.plugin.groupmapper import (
        BranchCase,
        BranchCost,
        BranchMapper,
        GroupMapper,
        GroupResult,
        GroupTask,
    )
    from tilewright.plugin.hook_data import ObservedRun, Section
    from tilewright.plugin.hooks import hookimpl
    from tilewright.plugin.interface import INTERFACE, OLDEST_INTERFACE
    from tilewright.plugin.mapper import Budget, FigureReporter, Mapper, Proposals, Run, Task, objectives, started
    from tilewright.plugin.registry import Registry, discover, installed
    from tilewright.plugin.result import Progress, Result
    from tilewright.plugin.route import Route
    from tilewright.plugin.specs import (
        AdapterSpec,
        AlgorithmSpec,
        Approximation,
        CostModelSpec,
        EstimatorSpec,
        FrontendSpec,
        GroupMapperSpec,
        MapperSpec,
        NoOptions,
        Options,
        PluginSpec,
        StrategySpec,
        lazy,
    )
    from tilewright.plugin.strategy import ExplorationTask, PointProposal, PointProposals, PointResult, Strategy
    from tilewright.prices import (
        Price,
        access_pj,
        charged,
        leakage_pj,
        port_cycles,
        port_time,
        price_of,
        prices_of,
        rounding_difference,
        tensor_pj,
        value_pj,
    )
    from tilewright.reports import (
        AccessCounts,
        Accesses,
        Delivery,
        Execution,
        InstanceCounts,
        LevelReport,
        Limit,
        MeshReport,
        MetadataCounts,
        NetworkReport,
        RankCounts,
        Served,
        SparseCounts,
        TensorCounts,
        overlapping,
    )
    from tilewright.schema.alternative import Alternative, Movement
    from tilewright.schema.architecture import Cluster, Memory
    from tilewright.schema.density import Density, Nonzeros
    from tilewright.schema.frozen import FrozenDict
    from tilewright.schema.group import GroupMapping
    from tilewright.schema.mapping import Entry, Loop
    from tilewright.schema.objective import Objective
    from tilewright.schema.origin import Origin
    from tilewright.schema.problem import Tensor
    from tilewright.schema.read import Index, Read
    from tilewright.schema.sparse import (
        MetadataStorage,
        RankFormat,
        Saving,
        SparseCompute,
        SparseMemory,
        TensorFormat,
    )
    from tilewright.schema.vector import GroupVector, Operand, OperatorWork, Unit, VectorLayer
    from tilewright.schema.workload import Kept, Layer, Unmapped

__all__ = [
    "AccessBatch",
    "AccessCounts",
    "Accesses",
    "Accuracy",
    "Adapter",
    "AdapterSpec",
    "Algorithm",
    "AlgorithmSpec",
    "Alternative",
    "Approximation",
    "Attribute",
    "BatchEvaluator",
    "Bools",
    "Bounder",
    "BranchCase",
    "BranchCost",
    "BranchMapper",
    "Budget",
    "COMPONENTS",
    "CandidateEvaluator",
    "Candidates",
    "Capabilities",
    "Cluster",
    "ComposedModel",
    "CostModel",
    "CostModelSpec",
    "Costs",
    "CountingEvaluator",
    "CycleLimit",
    "Delivery",
    "Density",
    "DirectiveModel",
    "EdgeReader",
    "Entry",
    "Estimate",
    "Estimator",
    "EstimatorSpec",
    "Evaluator",
    "Execution",
    "ExplorationTask",
    "FigureReporter",
    "Floats",
    "Frontend",
    "FrontendSpec",
    "FrozenDict",
    "GroupMapper",
    "GroupMapperSpec",
    "GroupMapping",
    "GroupModel",
    "GroupResult",
    "GroupRow",
    "GroupTask",
    "GroupVector",
    "HARDWARE_ATTRIBUTES",
    "INTERFACE",
    "Index",
    "InputSet",
    "InstanceCounts",
    "Ints",
    "Kept",
    "Layer",
    "LayerReader",
    "LevelReport",
    "Limit",
    "Loop",
    "Mapper",
    "MapperSpec",
    "MappingBatch",
    "Memory",
    "MeshReport",
    "MetadataCounts",
    "MetadataStorage",
    "Movement",
    "NetworkReport",
    "NoOptions",
    "Nonzeros",
    "NotationTable",
    "OLDEST_INTERFACE",
    "Objective",
    "Operand",
    "OperatorWork",
    "ObservedRun",
    "Options",
    "Origin",
    "PluginSpec",
    "PointProposal",
    "PointProposals",
    "PointResult",
    "Price",
    "Progress",
    "Proposals",
    "RankCounts",
    "RankFormat",
    "Read",
    "Reason",
    "RecordedFigure",
    "Registry",
    "Relaxable",
    "Relaxation",
    "ReportReader",
    "Result",
    "Route",
    "Run",
    "Saving",
    "ScalarEvaluator",
    "Section",
    "Served",
    "Skeleton",
    "SparseCompute",
    "SparseCounts",
    "SparseMemory",
    "Strategy",
    "StrategySpec",
    "Task",
    "Tensor",
    "TOPICS",
    "TensorCounts",
    "TensorFormat",
    "Unit",
    "Unmapped",
    "VectorLayer",
    "VectorModel",
    "Verdict",
    "access_pj",
    "arrangements",
    "charged",
    "count_uneven",
    "discover",
    "group_report",
    "hookimpl",
    "installed",
    "lazy",
    "leakage_pj",
    "legal",
    "legality",
    "memory_table",
    "objectives",
    "overlapping",
    "port_cycles",
    "port_time",
    "price_of",
    "prices_of",
    "rounding_difference",
    "started",
    "tensor_pj",
    "tile_words",
    "value_pj",
]

__getattr__, __dir__ = lazy_exports(__name__)
