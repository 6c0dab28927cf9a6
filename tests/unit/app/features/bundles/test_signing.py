"""Signatures of bundles."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from app.features.bundles.errors import BundleError, BundleRefused
from app.features.bundles.signing import check_signature, make_key, sign

ROOT = "ab" * 32


@pytest.fixture
def private_key(tmp_path: Path) -> Path:
    make_key(tmp_path / "key.pem")
    return tmp_path / "key.pem"


def signature_file(private_key: Path, root: str = ROOT) -> Path:
    path = private_key.with_name("bundle.zip.sig")
    path.write_bytes(sign(root, private_key))
    return path


def test_valid_signature_gives_the_key_fingerprint(private_key: Path):
    public = private_key.with_name("key.pem.pub")
    assert len(check_signature(ROOT, signature_file(private_key), public)) == 64
    assert private_key.stat().st_mode & 0o777 == 0o600


def test_same_root_gives_the_same_signature(private_key: Path):
    assert sign(ROOT, private_key) == sign(ROOT, private_key)


def test_signature_of_another_root_is_rejected(private_key: Path):
    with pytest.raises(BundleRefused, match="signs another bundle"):
        check_signature("cd" * 32, signature_file(private_key), private_key.with_name("key.pem.pub"))


def test_signature_by_another_key_is_rejected(private_key: Path, tmp_path: Path):
    other = make_key(tmp_path / "other.pem")
    with pytest.raises(BundleRefused, match="not signed by the key"):
        check_signature(ROOT, signature_file(private_key), other)


@pytest.mark.parametrize(
    "change", [{"payloadType": "text/plain"}, {"signatures": []}, {"payload": "!"}, {"payload": None}]
)
def test_changed_signature_is_rejected(private_key: Path, change: dict[str, object]):
    path = signature_file(private_key)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BundleRefused):
        check_signature(ROOT, path, private_key.with_name("key.pem.pub"))


def test_replaced_payload_is_rejected(private_key: Path):
    path = signature_file(private_key)
    envelope = json.loads(path.read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["subject"][0]["digest"]["sha256"] = "cd" * 32
    path.write_text(json.dumps(envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode()}))
    with pytest.raises(BundleRefused, match="not signed"):
        check_signature("cd" * 32, path, private_key.with_name("key.pem.pub"))


def test_files_without_a_key_or_signature_are_rejected(private_key: Path, tmp_path: Path):
    path = signature_file(private_key)
    nothing = tmp_path / "nothing"
    nothing.write_bytes(b"nothing")
    with pytest.raises(BundleError, match="contains no private key"):
        sign(ROOT, nothing)
    with pytest.raises(BundleError, match="contains no public key"):
        check_signature(ROOT, path, nothing)
    with pytest.raises(BundleError, match="Cannot read"):
        sign(ROOT, tmp_path / "absent")
    with pytest.raises(BundleRefused, match="not a bundle signature"):
        check_signature(ROOT, nothing, private_key.with_name("key.pem.pub"))


def test_existing_key_is_never_overwritten(private_key: Path):
    before = private_key.read_bytes()
    with pytest.raises(BundleError, match="Cannot write"):
        make_key(private_key)
    assert private_key.read_bytes() == before


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_verifies_our_signature(private_key: Path, tmp_path: Path):
    envelope = json.loads(signature_file(private_key).read_text())
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    (tmp_path / "text").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    (tmp_path / "raw").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key.pem.pub", "-rawin", "-in", "text"]
    ended = subprocess.run([*command, "-sigfile", "raw"], cwd=tmp_path, capture_output=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
