"""Detached Ed25519 signatures over a bundle's root hash: DSSE envelope with an in-toto statement.

The root hash covers every byte of the bundle. Keys are PEM files that ``openssl`` can read and write.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.features.bundles.errors import BundleError, BundleRefused

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
PREDICATE_TYPE: Final = "https://w3id.org/assay/evidence-bundle/v1"
SUBJECT: Final = "tagmanifest-sha256.txt"
MAX_SIGNATURE_BYTES: Final = 64 * 1024


def make_key(private: Path) -> Path:
    """Create a key pair and return the path of the public key.

    Only the owner can read the private key. The public key has the same path plus ``.pub``.

    Raises:
        BundleError: a file already exists, or cannot be written.
    """
    public = private.with_name(f"{private.name}.pub")
    key = Ed25519PrivateKey.generate()
    try:
        if public.exists():
            raise FileExistsError(17, f"{public} already exists")
        handle = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(
                key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                )
            )
        public.write_bytes(_pem(key.public_key()))
    except OSError as error:
        raise BundleError(f"Cannot write the key pair {private}: {error.strerror or error}") from error
    return public


def sign(root: str, private: Path) -> bytes:
    """Return the signature file for a root hash.

    Raises:
        BundleError: the file contains no Ed25519 private key.
    """
    key = _load_key(private, private=True)
    if not isinstance(key, Ed25519PrivateKey):
        raise BundleError(f"{private} contains no Ed25519 private key; create one with: assay bundle key FILE")
    payload = json.dumps(_statement(root), sort_keys=True, separators=(",", ":")).encode()
    signature = key.sign(_pre_authentication_encoding(payload))
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key_id(key.public_key()), "sig": base64.b64encode(signature).decode()}],
    }
    return (json.dumps(envelope, indent=1) + "\n").encode()


def check_signature(root: str, signature: Path, public: Path) -> str:
    """Return the id of the key that signed this root hash.

    Raises:
        BundleRefused: the file is not a signature, was made with another key, or signs another root hash.
        BundleError: ``public`` contains no Ed25519 public key.
    """
    key = _load_key(public, private=False)
    if not isinstance(key, Ed25519PublicKey):
        raise BundleError(f"{public} contains no Ed25519 public key")
    try:
        if signature.stat().st_size > MAX_SIGNATURE_BYTES:
            raise ValueError(f"it has more than {MAX_SIGNATURE_BYTES} bytes")
        envelope = json.loads(signature.read_bytes())
        payload = base64.b64decode(envelope["payload"], validate=True)
        signed = [base64.b64decode(each["sig"], validate=True) for each in envelope["signatures"]]
        has_payload_type = envelope["payloadType"] == PAYLOAD_TYPE
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BundleRefused(f"{signature} is not a bundle signature: {error}") from error
    if not has_payload_type or not any(_is_signed(key, each, payload) for each in signed):
        raise BundleRefused(f"{signature} is not signed by the key in {public}")
    if json.loads(payload) != _statement(root):
        raise BundleRefused(f"{signature} signs another bundle")
    return key_id(key)


def key_id(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of the raw public key bytes."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()


def _statement(root: str) -> dict[str, Any]:
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": SUBJECT, "digest": {"sha256": root}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {},
    }


def _pre_authentication_encoding(payload: bytes) -> bytes:
    """Return the pre-authentication encoding of DSSE, which includes the payload type."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _is_signed(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    try:
        key.verify(signature, _pre_authentication_encoding(payload))
    except InvalidSignature:
        return False
    return True


def _load_key(path: Path, *, private: bool) -> object:
    try:
        data = path.read_bytes()
        return (
            serialization.load_pem_private_key(data, password=None)
            if private
            else serialization.load_pem_public_key(data)
        )
    except OSError as error:
        raise BundleError(f"Cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BundleError(
            f"{path} contains no {'private' if private else 'public'} key in PEM format: {error}"
        ) from error


def _pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
