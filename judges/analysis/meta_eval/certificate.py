"""Certificates: measured agreement of a judge with people. Results contain the certificate that applies to them.

The newest certificate applies that has the model of the result and all prompt versions of its verdicts. It does not
apply to another model or to another version of a prompt. It covers the languages and the kinds of pages of its labels;
``certification`` says which of a result it does not cover.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from judges.analysis.meta_eval.items import PartialRule
from judges.analysis.meta_eval.judge_agreement import JudgeAgreement
from judges.analysis.meta_eval.report import FIGURES, agreement_json
from judges.analysis.statistics.agreement import agreement, sum_of
from judges.errors import JudgeError
from judges.voting import members_in
from rubrics.result_fields import nodes_below

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


MIN_COVERED_SHARE = 0.05
"""Minimum share of the labelled claims of a certificate with a language or a kind of page that it covers."""


def certify(
    measured: Sequence[tuple[Mapping[str, Any], JudgeAgreement]], *, rule: PartialRule, at: datetime, tool_version: str
) -> Certificate:
    """Return the certificate of a judge that was asked.

    ``measured`` has one entry per label set: its summary (``SetTally.as_json``) and the agreement of the judge on it.

    Raises:
        NoVerdictsToCertify: the judge gave no verdict on any item.
    """
    judge = measured[0][1]
    pooled = agreement(sum_of(one.agreement.confusion for _, one in measured))
    if not pooled.confusion.n:
        raise NoVerdictsToCertify(f"{judge.model} gave no verdict on any labelled claim")
    document = {
        "certificate_version": CERTIFICATE_VERSION,
        "model": judge.model,
        "prompts": sorted({prompt for _, one in measured for prompt in one.prompts}),
        "votes": judge.votes,
        "issued_at": at.isoformat(),
        "tool_version": tool_version,
        "rule": rule.value,
        "labels": {
            "sha256": _digest_of_sets(labels for labels, _ in measured),
            "items": sum(labels["usable"] for labels, _ in measured),
            "reviewers": len({reviewer for labels, _ in measured for reviewer in labels["reviewers"]}),
        },
        "sets": [
            {"name": labels["name"], "sha256": labels["sha256"], **agreement_json(one.agreement)}
            for labels, one in measured
        ],
        "languages": _covered(labels["languages"] for labels, _ in measured),
        "page_kinds": _covered(labels["page_kinds"] for labels, _ in measured),
        "n": pooled.confusion.n,
        "not_judged": sum(one.unjudged_by_reason.total() for _, one in measured),
        "confusion": asdict(pooled.confusion),
        "figures": {name: asdict(getattr(pooled, name)) for name in FIGURES},
    }
    return certificate_from({"id": _id(document), **document})


def _digest_of_sets(sets: Iterable[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of a single label file, or that of the sorted digests of several, one per line."""
    digests = sorted(labels["sha256"] for labels in sets)
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _covered(counts_by_set: Iterable[Mapping[str, int]]) -> list[str]:
    total: Counter[str] = Counter()
    for counts in counts_by_set:
        total.update(counts)
    return sorted(name for name, count in total.items() if count >= MIN_COVERED_SHARE * total.total())


def certification(
    certificate: Mapping[str, Any] | None, *, model: str, language: str | None, page_kinds: Iterable[str]
) -> dict[str, Any]:
    """Return what the certificate of a judge says about a result, for the field ``certification``.

    Args:
        certificate: Document of the certificate that applies to the result; None if there is none.
        language: Language of the answer, None if unknown.
        page_kinds: Kinds of the pages that the judge was shown.
    """
    if certificate is None:
        if len(members_in(model)[0]) > 1:
            note = f"Certificates are for single models; there is none for the jury {model}."
            return {"status": "none", "certificate": None, "not_covered": [], "note": note}
        name = model.removeprefix("lexical/")
        note = f"No certificate: the agreement of {name} with people was not measured for the prompts of this result."
        return {"status": "none", "certificate": None, "not_covered": [], "note": note}
    languages, kinds = certificate.get("languages") or (), certificate.get("page_kinds") or ()
    missing = [f"language {language}"] if language is not None and language not in languages else []
    missing += [f"{kind} pages" for kind in sorted(set(page_kinds) - set(kinds))]
    note = f"The certificate of {model} does not cover: {', '.join(missing)}." if missing else ""
    status = "partly_covered" if missing else "covered"
    return {"status": status, "certificate": certificate["id"], "not_covered": missing, "note": note}


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
    trees = [part["verification_tree"] for part in result.get("eval_breakdown") or ()]
    prompts = (node.get("prompt") for tree in trees for node in nodes_below(tree))
    return tuple(sorted({prompt for prompt in prompts if isinstance(prompt, str)}))


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
