"""Certificates: measured agreement of a judge with people. Results contain the certificate that applies to them.

The newest certificate applies that has the model of the result and all prompt versions of its verdicts. It does not
apply to another model or to another version of a prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from judges.analysis.meta_eval.judge_agreement import JudgeAgreement
from judges.analysis.meta_eval.report import FIGURES
from judges.errors import JudgeError

CERTIFICATE_VERSION = 1
SUFFIX = ".json"


class CertificateUnreadable(JudgeError):
    """A file is not a certificate, or was changed: its id is the digest of the other fields."""


class NoVerdictsToCertify(JudgeError):
    """The judge gave no verdict on any labelled item, so there are no figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Certificate of one judge. ``document`` is its JSON, which results contain."""

    model: str
    prompts: frozenset[str]
    issued_at: datetime
    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.document["id"])


def certify(measured: JudgeAgreement, labels: Mapping[str, Any], *, at: datetime, tool_version: str) -> Certificate:
    """Return the certificate of a judge that was asked. ``labels`` is the output of ``labels_json``.

    Raises:
        NoVerdictsToCertify: the judge gave no verdict on any item.
    """
    agreement = measured.agreement
    if not agreement.confusion.n:
        raise NoVerdictsToCertify(f"{measured.model} gave no verdict on any labelled claim")
    document = {
        "certificate_version": CERTIFICATE_VERSION,
        "model": measured.model,
        "prompts": list(measured.prompts),
        "votes": measured.votes,
        "issued_at": at.isoformat(),
        "tool_version": tool_version,
        "labels": {
            "sha256": labels["sha256"],
            "items": labels["usable"],
            "reviewers": len(labels["reviewers"]),
        },
        "n": agreement.confusion.n,
        "not_judged": len(measured.unjudged),
        "confusion": asdict(agreement.confusion),
        "figures": {name: asdict(getattr(agreement, name)) for name in FIGURES},
    }
    return certificate_from({"id": _id(document), **document})


def certificate_from(document: object) -> Certificate:
    """Return the certificate in a JSON document.

    Raises:
        CertificateUnreadable: the document is not a certificate, or was changed after it was issued.
    """
    try:
        read = _Document.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise CertificateUnreadable(f"not a certificate: {place}: {first['msg']}") from error
    fields: dict[str, Any] = dict(document) if isinstance(document, Mapping) else {}
    if _id({name: value for name, value in fields.items() if name != "id"}) != read.id:
        raise CertificateUnreadable(
            f"certificate {read.id} was changed after it was issued: its id does not match its content"
        )
    return Certificate(model=read.model, prompts=frozenset(read.prompts), issued_at=read.issued_at, document=fields)


def applicable_certificate(
    certificates: Iterable[Certificate], *, model: str, prompts: Sequence[str]
) -> Certificate | None:
    """Return the newest certificate of ``model`` (``provider/model``) that covers all ``prompts``.

    Returns None if there is no such certificate or no prompt.
    """
    if not prompts:
        return None
    required = frozenset(prompts)
    matching = [
        certificate for certificate in certificates if certificate.model == model and required <= certificate.prompts
    ]
    return max(matching, key=lambda one: (one.issued_at, one.id), default=None)


def verdict_prompts(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the prompts (``id@version``) of the verdicts of a result, sorted."""
    prompts: set[str] = set()
    for part in result.get("eval_breakdown") or ():
        prompts.update(_prompts(part["verification_tree"]))
    return tuple(sorted(prompts))


def read_certificates(folder: Path) -> tuple[list[Certificate], list[str]]:
    """Return the certificates in a folder, and a message for each invalid file. Blocks on the disk.

    A missing folder counts as empty.

    Raises:
        CertificateUnreadable: the folder cannot be read.
    """
    certificates: list[Certificate] = []
    problems: list[str] = []
    try:
        files = sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []
        for file in files:
            try:
                certificates.append(certificate_from(json.loads(file.read_text(encoding="utf-8"))))
            except (CertificateUnreadable, ValueError) as error:
                problems.append(f"{file}: {error}")
    except OSError as error:
        raise CertificateUnreadable(f"{folder}: {error}") from error
    return certificates, problems


def _prompts(node: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node.get("prompt"), str):
        yield node["prompt"]
    for child in node.get("children") or ():
        yield from _prompts(child)


def _id(document: Mapping[str, Any]) -> str:
    whole = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"crt_{hashlib.sha256(whole.encode()).hexdigest()[:32]}"


class _Document(BaseModel):
    """Required fields of a certificate. Additional fields are allowed."""

    model_config = ConfigDict(extra="allow")

    certificate_version: Literal[1]
    id: Annotated[str, Field(pattern="^crt_[0-9a-f]{32}$")]
    model: str
    prompts: list[str]
    issued_at: AwareDatetime
    figures: dict[str, Any]
