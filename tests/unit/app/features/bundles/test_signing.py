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
def private(tmp_path: Path) -> Path:
    make_key(tmp_path / "key.pem")
    return tmp_path / "key.pem"


def signed(private: Path, root: str = ROOT) -> Path:
    path = private.with_name("bundle.zip.sig")
    path.write_bytes(sign(root, private))
    return path


def test_valid_signature_gives_the_key_fingerprint(private: Path):
    public = private.with_name("key.pem.pub")
    assert len(check_signature(ROOT, signed(private), public)) == 64
    assert private.stat().st_mode & 0o777 == 0o600


def test_same_root_gives_the_same_signature(private: Path):
    assert sign(ROOT, private) == sign(ROOT, private)


def test_signature_of_another_root_is_rejected(private: Path):
    with pytest.raises(BundleRefused, match="signs another bundle"):
        check_signature("cd" * 32, signed(private), private.with_name("key.pem.pub"))


def test_signature_by_another_key_is_rejected(private: Path, tmp_path: Path):
    other = make_key(tmp_path / "other.pem")
    with pytest.raises(BundleRefused, match="not signed by the key"):
        check_signature(ROOT, signed(private), other)


@pytest.mark.parametrize(
    "change", [{"payloadType": "text/plain"}, {"signatures": []}, {"payload": "!"}, {"payload": None}]
)
def test_changed_signature_is_rejected(private: Path, change: dict[str, object]):
    path = signed(private)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BundleRefused):
        check_signature(ROOT, path, private.with_name("key.pem.pub"))


def test_replaced_payload_is_rejected(private: Path):
    path = signed(private)
    envelope = json.loads(path.read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["subject"][0]["digest"]["sha256"] = "cd" * 32
    path.write_text(json.dumps(envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode()}))
    with pytest.raises(BundleRefused, match="not signed"):
        check_signature("cd" * 32, path, private.with_name("key.pem.pub"))


def test_files_without_a_key_or_signature_are_rejected(private: Path, tmp_path: Path):
    path = signed(private)
    nothing = tmp_path / "nothing"
    nothing.write_bytes(b"nothing")
    with pytest.raises(BundleError, match="contains no private key"):
        sign(ROOT, nothing)
    with pytest.raises(BundleError, match="contains no public key"):
        check_signature(ROOT, path, nothing)
    with pytest.raises(BundleError, match="Cannot read"):
        sign(ROOT, tmp_path / "absent")
    with pytest.raises(BundleRefused, match="not a bundle signature"):
        check_signature(ROOT, nothing, private.with_name("key.pem.pub"))


def test_existing_key_is_never_overwritten(private: Path):
    before = private.read_bytes()
    with pytest.raises(BundleError, match="Cannot write"):
        make_key(private)
    assert private.read_bytes() == before


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here")
def test_openssl_verifies_our_signature(private: Path, tmp_path: Path):
    envelope = json.loads(signed(private).read_text())
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    (tmp_path / "text").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    (tmp_path / "raw").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key.pem.pub", "-rawin", "-in", "text"]
    ended = subprocess.run([*command, "-sigfile", "raw"], cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr
