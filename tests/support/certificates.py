"""Certificates with other parts, in the envelope or in the claim."""

from typing import Any, TypeVar

from tilewright.schema.mapped.certificate import Certificate

Some = TypeVar("Some", bound=Certificate[Any])


def with_parts(certificate: Some, **parts: Any) -> Some:
    """Return the certificate with other fields of its own, and of its claim."""
    fields = {name: part for name, part in parts.items() if name in type(certificate).model_fields}
    rest = {name: part for name, part in parts.items() if name not in fields}
    claim = certificate.claim.model_copy(update=rest) if rest else certificate.claim
    return certificate.model_copy(update={"claim": claim} | fields)
