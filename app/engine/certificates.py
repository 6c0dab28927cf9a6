"""Certificates of judges: those that ``assay meta-eval --certify`` writes, and the one that applies to a result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from judges.analysis.meta_eval.certificate import (
    SUFFIX,
    Certificate,
    CertificateUnreadable,
    applicable_certificate,
    read_certificates,
    verdict_prompts,
)
from judges.result_files import write_json

_log = structlog.get_logger(__name__)

FOLDER = "certificates"


def certificates_folder(data_dir: Path, configured: Path | None) -> Path:
    """Return the folder of certificates: the configured one, or a folder in the data folder."""
    return configured or data_dir / FOLDER


async def find_certificate(result: Mapping[str, Any], folder: Path, *, model: str) -> dict[str, Any] | None:
    """Return the valid certificate for a result judged by ``model`` (``provider/model``); None if there is none.

    An unreadable certificate is logged and ignored, because it must not prevent judging.
    """
    prompts = verdict_prompts(result)
    if not prompts:
        return None
    try:
        known, problems = await asyncio.to_thread(read_certificates, folder)
    except CertificateUnreadable as error:
        known, problems = [], [str(error)]
    for problem in problems:
        _log.warning("certificate unreadable", detail=problem)
    certificate = applicable_certificate(known, model=model, prompts=prompts)
    return None if certificate is None else dict(certificate.document)


def write_certificate(certificate: Certificate, folder: Path) -> Path:
    """Write a certificate atomically and return its path. Blocks on the disk."""
    path = folder / f"{certificate.issued_at:%Y%m%d_%H%M%S}_{certificate.id}{SUFFIX}"
    write_json(path, dict(certificate.document))
    return path
