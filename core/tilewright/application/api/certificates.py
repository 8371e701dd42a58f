"""`verify_certificate`: is it true that no mapping of a space costs less than this?"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.application.api.call_arguments import checked, whole
from tilewright.application.api.fusion_certificates import group_checks, network_checks
from tilewright.application.documents.checks import CertificateOutput, CheckResult
from tilewright.application.run.artifacts.checks import Check, layer_checks
from tilewright.errors import InputError
from tilewright.schema.document import Document, FileModel, read_document, validate
from tilewright.schema.mapped.certificate import Certificate, GroupClaim, LayerClaim, NetworkClaim
from tilewright.tables import Column, Table, Tabular, numbers
from tilewright.values import attributes

SAMPLES, FUSED_SAMPLES = 100_000, 300
LIMIT, FUSED_LIMIT = 1_000_000, 1_000
"""Defaults for single layers, and for fused ones, which take some milliseconds each."""

AGAIN = "to prove the changed problem or architecture, map it again: `tilewright map PROBLEM --arch ARCH -o FOLDER`"


@dataclass(frozen=True, repr=False)
class CertificateVerification(Tabular):
    """Result of checking a certificate; `passed` of a check is None if the check could not run.

    Example:
        >>> import tilewright as tw
        >>> report = tw.map("nk,km->nm; n=2 k=2 m=2", "eyeriss", cache=False)
        >>> verification = tw.verify_certificate(report.certificate("einsum"))
        >>> verification.right
        True
    """

    certificate: Certificate[Any]
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        name, _ = self.certificate.claim.names
        return f"<CertificateVerification of {name}: {'right' if self.right else 'not confirmed'}>"

    @property
    def right(self) -> bool:
        """Nothing speaks against it, and the bound was proved again."""
        return all(check.passed is not False for check in self.checks) and any(
            check.name == "bound" and check.passed for check in self.checks
        )

    def rows(self) -> list[dict[str, Any]]:
        """One per check."""
        return [asdict(check) for check in self.checks]

    def data(self) -> dict[str, Any]:
        """The JSON document of `verify --certificate FILE --json`."""
        it = self.certificate
        subject, arch = it.claim.names
        return CertificateOutput(
            right=self.right,
            problem=subject,
            arch=arch,
            objective=it.objective.name,
            **attributes(it, "value bound gap"),
            mappings=it.claim.space.mappings if isinstance(it.claim, LayerClaim) else None,
            warnings=list(self.warnings),
            checks=[CheckResult(**row) for row in self.rows()],
        ).data()

    def tables(self) -> Sequence[Table | str]:
        table = Table("check", "passed", numbers("mappings"), Column("what comes out", wrapped=True))
        for check in self.checks:
            passed = {True: "yes", False: "NO", None: "not asked"}[check.passed]
            table.add_row(check.name, passed, check.tried or None, check.message)
        counts = Counter(check.passed for check in self.checks)
        told = f"{counts[True]} of {len(self.checks)} checks passed, {counts[False]} failed, {counts[None]} could not be asked"
        changed = any(check.name == "contents" and check.passed is False for check in self.checks)
        return [
            str(self.certificate),
            "",
            table,
            f"{told}: {'right' if self.right else 'not confirmed'}",
            *([f"the file was changed after the proof; {AGAIN}"] if changed else []),
        ]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Versions other than those that it was made with."""
        return tuple(
            f"it was made with {name} {version}, and is checked with {now}"
            for name, version in self.certificate.versions.items()
            if (now := _version(name)) != version
        )


@checked
def verify_certificate(
    certificate: str | os.PathLike[str] | MappingOf[str, Any] | FileModel,
    *,
    samples: int | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> CertificateVerification:
    """Check a certificate that `map` wrote, like `tilewright verify --certificate`.

    The incumbent is evaluated again. Random mappings and the incumbent's neighbours are compared with the bound.
    In small spaces all mappings are compared with it. Finally the mapper has to prove the bound again, first from another seed.
    Of fused layers, the mapping is evaluated again, also as a group mapping, and executed if it is small. Other group
    mappings are compared with the bound: all of a small space, or random ones and their neighbours. Then the search has
    to prove the bound again.

    Args:
        certificate: path of the file, its content as a dict, or a Certificate.
        samples: number of random mappings, and maximum number of neighbours. Default: 100,000; of fused layers 300.
        limit: maximum size of a space whose mappings are all enumerated. Default: 1,000,000; of fused layers 1,000.
        seed: seed of the random mappings.

    Returns:
        All checks with their results. It is `right` if none failed and the bound was proved again.

    Raises:
        CallError, InputError: an argument or the file is invalid.
        UnknownPluginError: the cost model is not installed. If only the mapper is missing, its checks do not run.
        PluginError: the cost model or the mapper failed.

    Example:
        >>> import tilewright as tw
        >>> report = tw.map("nk,km->nm; n=2 k=2 m=2", "eyeriss", cache=False)
        >>> tw.verify_certificate(report.certificate("einsum")).right
        True
    """
    read = _read(certificate)
    fused = not isinstance(read.claim, LayerClaim)
    most = (FUSED_SAMPLES if fused else SAMPLES) if samples is None else samples
    largest = (FUSED_LIMIT if fused else LIMIT) if limit is None else limit
    whole(1, samples=most)
    whole(0, limit=largest, seed=seed)
    return CertificateVerification(read, tuple(checks(read, most, largest, seed)))


def checks(certificate: Certificate[Any], samples: int, limit: int, seed: int) -> Iterator[Check]:
    """Return the results of all checks in sequence, cheap ones first; the arguments are those of `verify_certificate`."""
    return _CHECKS[type(certificate.claim)](certificate, samples, limit, seed)


_CHECKS: dict[type, Callable[[Certificate[Any], int, int, int], Iterator[Check]]] = {
    LayerClaim: layer_checks,
    GroupClaim: group_checks,
    NetworkClaim: network_checks,
}


def _read(source: str | os.PathLike[str] | MappingOf[str, Any] | FileModel) -> Certificate[Any]:
    """Return the certificate that `source` contains. Raises InputError."""
    if isinstance(source, Certificate):
        return source
    if isinstance(source, FileModel):
        raise InputError(f"a {type(source).__name__} is no certificate")
    document = Document(dict(source), "dict") if isinstance(source, MappingOf) else read_document(os.fspath(source))
    return validate(Certificate, document)


def _version(name: str) -> str:
    """Return the version of an installed distribution or of Python, or "none"."""
    try:
        return platform.python_version() if name == "python" else importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
