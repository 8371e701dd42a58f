"""`estimate`: energy, area and leakage of a component; `estimators`: selection of estimators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewright.application.api.call_arguments import checked
from tilewright.application.documents.hardware import EstimateOutput, EstimateRow, Refusal
from tilewright.errors import InputError, NotEstimatedError, Reason
from tilewright.estimation.asking import Answer, Estimators, Question, current, using
from tilewright.formats import figure
from tilewright.plugin.estimator import COMPONENTS, Attribute
from tilewright.tables import Column, Table, Tabular, numbers
from tilewright.values import attributes


@dataclass(frozen=True, repr=False)
class ComponentReport(Tabular):
    """Answers of estimators for one component, action by action; the first answer counts.

    Example:
        >>> import tilewright as tw
        >>> report = tw.estimate("sram", {"size_bits": 524288, "width_bits": 64}, technology_nm=45)
        >>> report.component
        'sram'
    """

    component: str
    sizes: Mapping[str, Attribute]
    technology_nm: float
    answers: Mapping[str, Answer]
    """Answer that counts, by action."""
    others: tuple[tuple[str, str, Answer | Reason], ...]
    """All answers as (action, estimator, answer), in the order of the queries."""

    def __repr__(self) -> str:
        return f"<ComponentReport of {self.component}: {', '.join(self.answers)}>"

    @property
    def area_um2(self) -> float | None:
        """Area of one instance, square micrometres; None if unknown."""
        return next((answer.estimate.area_um2 for answer in self.answers.values()), None)

    @property
    def leakage_w(self) -> float | None:
        """Leakage of one instance, W; None if unknown."""
        return next((answer.estimate.leakage_w for answer in self.answers.values()), None)

    def energy_pj(self, action: str) -> float:
        """Return the energy of one action, pJ, or raise KeyError for an unknown action."""
        return self.answers[action].estimate.energy_pj

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per answered action."""
        return [
            {
                "component": self.component,
                "action": action,
                **attributes(answer.estimate, "energy_pj bits area_um2 leakage_w"),
                **attributes(answer, "estimator version"),
                **answer.estimate.accuracy.model_dump(),
            }
            for action, answer in self.answers.items()
        ]

    def data(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return EstimateOutput(
            component=self.component,
            sizes=dict(self.sizes),
            technology_nm=self.technology_nm,
            estimates=[EstimateRow(**row) for row in self.rows()],
            refusals=[
                Refusal(action=action, estimator=name, code=said.code, message=said.message)
                for action, name, said in self.others
                if isinstance(said, Reason)
            ],
        ).data()

    def tables(self) -> Sequence[Table | str]:
        sizes = ", ".join(f"{name} {value:,.10g}" if isinstance(value, float | int) else f"{name} {value}" for name, value in self.sizes.items())  # fmt: skip
        lines: list[Table | str] = [f"{self.component} at {self.technology_nm:g} nm: {sizes or 'no sizes'}"]
        area, leakage = self.area_um2, self.leakage_w
        lines += [] if area is None else [f"  area     {figure(area, 6)} um2"]
        lines += [] if leakage is None else [f"  leakage  {figure(leakage * 1e6)} uW"]
        table = Table("action", numbers("energy", "pJ/action"), numbers("bits"), numbers("energy", "pJ/bit"), "by")
        for action, answer in self.answers.items():
            energy, bits = answer.estimate.energy_pj, answer.estimate.bits
            table.add_row(action, energy, bits, energy / bits, answer.estimator)
        told = dict.fromkeys((answer.estimator, answer.estimate.accuracy) for answer in self.answers.values())
        about = Table("by", Column("accuracy", wrapped=True))
        for name, accuracy in told:
            cell = f"; cells {accuracy.cell}" if accuracy.cell else ""
            about.add_row(name, f"{accuracy.source}; error: {accuracy.error}; holds for {accuracy.valid}{cell}")
        return [*lines, "", table, about, *self._refused()]

    def _refused(self) -> Iterator[Table]:
        table = Table("not by", Column("because", wrapped=True))
        for name, reason in dict.fromkeys((name, said) for _, name, said in self.others if isinstance(said, Reason)):
            table.add_row(name, reason.message)
        if table.rows:
            yield table


@checked
def estimate(
    component: str,
    sizes: Mapping[str, Attribute] | None = None,
    *,
    technology_nm: float,
    estimator: str | None = None,
) -> ComponentReport:
    """Estimate a component, as `tilewright estimate` does.

    Args:
        component: Kind of component, such as `sram`, `register`, `dram` or `mac`.
        sizes: Its attributes, such as `{"size_bits": 524288, "width_bits": 64}`.
        technology_nm: Technology node, nm.
        estimator: The only estimator to query. Default: all in order of priority; the first answer counts.

    Raises:
        CallError, InputError, UnknownPluginError: An argument is invalid.
        NotEstimatedError: No estimator supports the component; the answer of each is included.
        PluginError: The named estimator failed.

    Example:
        >>> import tilewright as tw
        >>> tw.estimate("sram", {"size_bits": 524288, "width_bits": 64}, technology_nm=45).component
        'sram'
    """
    if isinstance(technology_nm, bool) or not isinstance(technology_nm, int | float):
        raise InputError(f"technology_nm is {technology_nm!r}, expected nanometres")
    asked, given = current(), dict(sizes or {})
    answers: dict[str, Answer] = {}
    others: list[tuple[str, str, Answer | Reason]] = []
    for action in COMPONENTS.get(component, (("read", "write", "compute", "transfer"),))[0]:
        said = asked.answers(Question(component, given, action, technology_nm, {}, estimator))
        others += [(action, name, answer) for name, answer in said]
        first = next((answer for _, answer in said if isinstance(answer, Answer)), None)
        if first is not None:
            answers[action] = first
    if not answers:
        reasons = dict.fromkeys(
            said.model_copy(update={"where": name}) for _, name, said in others if isinstance(said, Reason)
        )
        raise NotEstimatedError(f"{component} at {technology_nm:g} nm", reasons)
    return ComponentReport(component, given, technology_nm, answers, tuple(others))


@contextmanager
def estimators(*names: str, **options: Mapping[str, Any]) -> Iterator[None]:
    """Query these estimators first, in this order, inside a `with` block.

    They apply where an architecture gives sizes instead of energies::

        with tw.estimators("cacti", cacti={"program": "/opt/cacti/cacti"}):
            arch = tw.load("sizes.arch.yaml")

    Args:
        names: Names of estimators.
        options: Options of each estimator, by name.

    Raises:
        UnknownPluginError: An estimator is not installed.
        InputError: Options are given for an estimator that is not named.

    Example:
        >>> import tilewright as tw
        >>> with tw.estimators("tables"):
        ...     report = tw.estimate("register", {"size_bits": 512, "width_bits": 16}, technology_nm=45)
        >>> report.component
        'register'
    """
    unnamed = [name for name in options if name not in names]
    if unnamed:
        raise InputError(
            f"options of {', '.join(unnamed)}, but the estimator is not named", hint=f"name it: '{unnamed[0]}'"
        )
    with using(Estimators({name: options.get(name, {}) for name in names})):
        yield
