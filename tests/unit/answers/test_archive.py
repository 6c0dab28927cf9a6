from __future__ import annotations

import gzip
import io
import random
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from answers.errors import InvalidSubmission, ProblemCode
from answers.public_layout import MAX_MEMBERS, MAX_TOTAL_BYTES, RATIO_FROM_BYTES, read_members
from answers.submission import MAX_ANSWER_BYTES

FILES = {"demo/t1/a.md": b"first", "demo/t1/b.md": b"second " * 2000, "demo/t2/c.md": b""}


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def tarred(files: dict[str, bytes], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    return tar_of([(tarfile.TarInfo(name), content) for name, content in files.items()], mode, form)


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode, format=form) as archive:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            info.mtime = 1.5
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def read(data: bytes) -> dict[str, bytes]:
    return dict(read_members(io.BytesIO(data)))


def rejection(data: bytes) -> tuple[str, ProblemCode]:
    with pytest.raises(InvalidSubmission) as caught:
        read(data)
    [problem] = caught.value.problems
    return problem.path, problem.code


FORMS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "zip": zipped,
    "tar": tarred,
    "tar.gz": lambda files: tarred(files, "w:gz"),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Callable[[dict[str, bytes]], bytes]:
    return FORMS[request.param]


Form = Callable[[dict[str, bytes]], bytes]


def test_members_are_read_unchanged(form: Form) -> None:
    assert read(form(FILES)) == FILES


@pytest.mark.parametrize("name", ["/etc/a.md", "demo/../../a.md", "C:\\a.md"])
def test_name_that_leads_out_of_the_archive_is_rejected(form: Form, name: str) -> None:
    assert rejection(form({**FILES, name: b"x"}))[1] is ProblemCode.BAD_ARCHIVE


def test_name_with_a_nul_byte_is_rejected() -> None:
    hidden = zipped({"demo/t1/a.mdX.exe": b"x"}).replace(b"a.mdX", b"a.md\0")
    assert rejection(hidden)[1] is ProblemCode.BAD_ARCHIVE


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_name_is_rejected() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("demo/a.md", "one")
        archive.writestr("./demo/a.md", "two")
    assert rejection(made.getvalue()) == ("demo/a.md", ProblemCode.DUPLICATE)
    twice = [(tarfile.TarInfo("demo/a.md"), b"one"), (tarfile.TarInfo("demo/a.md"), b"two")]
    assert rejection(tar_of(twice)) == ("demo/a.md", ProblemCode.DUPLICATE)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.FIFOTYPE])
def test_tar_member_that_is_not_a_regular_file_is_rejected(kind: bytes) -> None:
    info = tarfile.TarInfo("demo/a.md")
    info.type, info.linkname = kind, "/etc/passwd"
    assert rejection(tar_of([(info, b"")])) == ("demo/a.md", ProblemCode.BAD_ARCHIVE)


def test_sparse_tar_member_is_rejected() -> None:
    info = tarfile.TarInfo("demo/a.md")
    info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1000000000"}
    assert rejection(tar_of([(info, b"x")])) == ("demo/a.md", ProblemCode.BAD_ARCHIVE)


def test_zip_member_that_is_not_a_regular_file_is_rejected() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        info = zipfile.ZipInfo("demo/a.md")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    assert rejection(made.getvalue()) == ("demo/a.md", ProblemCode.BAD_ARCHIVE)


def test_encrypted_zip_member_or_unknown_compression_method_is_rejected() -> None:
    assert rejection(zipped({"demo/a.md": b"x"}, zipfile.ZIP_BZIP2)) == ("demo/a.md", ProblemCode.BAD_ARCHIVE)
    plain = bytearray(zipped({"demo/a.md": b"x"}, zipfile.ZIP_STORED))
    plain[plain.index(b"PK\x01\x02") + 8] |= 1
    assert rejection(bytes(plain)) == ("demo/a.md", ProblemCode.BAD_ARCHIVE)


def noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def test_member_larger_than_the_answer_limit_is_rejected(form: Form) -> None:
    name, code = rejection(form({"demo/a.md": noise(MAX_ANSWER_BYTES + 1)}))
    assert (name, code) == ("demo/a.md", ProblemCode.TOO_LARGE)


def test_member_with_an_excessive_compression_ratio_is_rejected() -> None:
    assert rejection(zipped({"demo/a.md": b"a" * MAX_ANSWER_BYTES})) == ("demo/a.md", ProblemCode.TOO_LARGE)
    assert rejection(tarred({"demo/a.md": b"a" * MAX_ANSWER_BYTES}, "w:gz"))[1] is ProblemCode.TOO_LARGE


def test_short_text_may_have_any_compression_ratio() -> None:
    dashes = {"demo/a.md": b"-" * (RATIO_FROM_BYTES // 2)}
    assert read(zipped(dashes)) == read(tarred(dashes, "w:gz")) == dashes


def test_archive_beyond_the_total_size_limit_is_rejected() -> None:
    content = noise(MAX_ANSWER_BYTES)
    many = {f"demo/t/{n}.md": content for n in range(MAX_TOTAL_BYTES // MAX_ANSWER_BYTES + 9)}
    for data in (zipped(many, zipfile.ZIP_STORED), tarred(many)):
        assert rejection(data) == ("", ProblemCode.TOO_LARGE)


@pytest.mark.slow
def test_gzip_bomb_is_rejected() -> None:
    packer = zlib.compressobj(9, wbits=31)
    block = packer.compress(bytes(1 << 20))
    bomb = block + b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    assert rejection(bomb) == ("", ProblemCode.TOO_LARGE)


@pytest.mark.slow
def test_too_many_members_are_rejected() -> None:
    many = {f"d/t/{n}.md": b"" for n in range(MAX_MEMBERS + 1)}
    for data in (zipped(many, zipfile.ZIP_STORED), tarred(many, form=tarfile.USTAR_FORMAT)):
        assert rejection(data) == ("", ProblemCode.TOO_MANY)


def end_record(directory_bytes: int, comment: bytes = b"") -> bytes:
    return struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, directory_bytes, 0, len(comment)) + comment


def test_oversized_zip_directory_is_rejected_wherever_its_end_record_is() -> None:
    huge = 1 << 30
    assert rejection(b"PK\x03\x04" + end_record(huge)) == ("", ProblemCode.TOO_MANY)
    assert rejection(b"PK\x03\x04" + end_record(huge, end_record(0))) == ("", ProblemCode.TOO_MANY)
    assert rejection(zipped(FILES)[:-2] + struct.pack("<H", 22) + end_record(huge)) == ("", ProblemCode.TOO_MANY)


def test_long_chain_of_tar_headers_is_rejected() -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 0
    assert rejection(header.tobuf() * 3000)[1] is ProblemCode.BAD_ARCHIVE


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x03\x04" + bytes(100)])
def test_data_that_is_not_an_archive_is_rejected(data: bytes) -> None:
    assert rejection(data) == ("", ProblemCode.BAD_ARCHIVE)


def test_truncated_archive_is_rejected(form: Form) -> None:
    data = form({"demo/a.md": noise(5000)})
    assert rejection(data[:2500])[1] is ProblemCode.BAD_ARCHIVE


def test_flipped_byte_in_a_compressed_member_is_rejected() -> None:
    for data in (zipped({"demo/a.md": noise(5000)}), gzip.compress(tarred({"demo/a.md": noise(5000)}))):
        flipped = bytearray(data)
        flipped[2500] ^= 0xFF
        assert rejection(bytes(flipped))[1] is ProblemCode.BAD_ARCHIVE


def test_randomly_damaged_archive_is_read_or_rejected_without_other_errors(form: Form, tmp_path: Path) -> None:
    chance = random.Random(7)
    whole = form(FILES)
    path = tmp_path / "archive"
    for _ in range(30):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(len(data))
            if chance.random() < 0.7:
                data[at] = chance.choice([0, 0xFF, 0x30, 0x80, chance.randrange(256)])
            else:
                del data[at : at + chance.randrange(1, 600)]
        path.write_bytes(data)
        with path.open("rb") as file:
            try:
                members = dict(read_members(file))
            except InvalidSubmission:
                continue
        assert all(len(content) <= MAX_ANSWER_BYTES for content in members.values())


def test_gzipped_archive_in_a_file_opened_for_reading_and_writing_is_read():
    with tempfile.TemporaryFile("w+b") as file:
        file.write(tarred(FILES, "w:gz"))
        assert dict(read_members(file)) == FILES
