"""Certificates of judges: those that ``assay meta-eval --certify`` writes, and the one that applies to a result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from app.settings import Settings
from cache.capture import EVIDENCE_OUTCOMES
from judges.analysis.languages import language_of
from judges.analysis.meta_eval.certificate import (
    SUFFIX,
    Certificate,
    CertificateUnreadable,
    applicable_certificate,
    certification,
    read_certificates,
    verdict_prompts,
)
from judges.result_files import write_json

_log = structlog.get_logger(__name__)

FOLDER = "certificates"


def certificates_folder(data_dir: Path, configured: Path | None) -> Path:
    """Return the folder of certificates: the configured one, or a folder in the data folder."""
    return configured or data_dir / FOLDER


async def certify_result(result: Mapping[str, Any], settings: Settings, *, model: str, answer: str) -> dict[str, Any]:
    """Return the fields ``certificate`` and ``certification`` of a result judged by ``model`` (``provider/model``).

    ``certificate`` is missing if none applies. Both are missing if no model gave a verdict. An unreadable certificate
    is logged and ignored, because it must not prevent judging.
    """
    prompts = verdict_prompts(result)
    if not prompts:
        return {}
    folder = certificates_folder(settings.data_dir, settings.certificates)
    try:
        known, problems = await asyncio.to_thread(read_certificates, folder)
    except CertificateUnreadable as error:
        known, problems = [], [str(error)]
    for problem in problems:
        _log.warning("certificate unreadable", detail=problem)
    certificate = applicable_certificate(known, model=model, prompts=prompts)
    if certificate is None:
        return {"certification": certification(None, model=model, language=None, page_kinds=())}
    kinds = [page["kind"] for page in result["pages"] if page["outcome"] in EVIDENCE_OUTCOMES]
    language = await asyncio.to_thread(language_of, answer)
    return {
        "certificate": dict(certificate.document),
        "certification": certification(certificate.document, model=model, language=language, page_kinds=kinds),
    }


def write_certificate(certificate: Certificate, folder: Path) -> Path:
    """Write a certificate atomically and return its path. Blocks on the disk."""
    path = folder / f"{certificate.issued_at:%Y%m%d_%H%M%S}_{certificate.id}{SUFFIX}"
    write_json(path, dict(certificate.document))
    return path
