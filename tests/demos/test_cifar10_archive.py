"""Where the CIFAR-10 archive comes from: the user, the cache, the official address."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_nb.demos import cifar10_archive as archive_module
from harness_nb.demos.cifar10_archive import find_archive
from harness_nb.errors import UsageError


def labels(batch: bytes) -> list[int]:
    return pickle.loads(batch, encoding="bytes")[b"labels"]


@pytest.fixture
def as_official(cifar10_archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lets the small archive pass for the official one."""
    monkeypatch.setattr(archive_module, "OFFICIAL_URL", cifar10_archive.as_uri())
    monkeypatch.setattr(archive_module, "OFFICIAL_MD5", hashlib.md5(cifar10_archive.read_bytes()).hexdigest())
    return cifar10_archive


@pytest.mark.parametrize("named", [".", "cifar-10-python.tar.gz", "cifar-10-batches-py"])
def test_what_the_user_names_is_taken(cifar10_archive: Path, named: str, tmp_path: Path) -> None:
    path = cifar10_archive.parent / named
    found = find_archive({"HARNESS_NB_CIFAR10": str(path), "XDG_CACHE_HOME": str(tmp_path)})
    assert len(labels(found.test_batch())) == 100
    assert found.is_folder == (named == "cifar-10-batches-py")
    assert ("not checked" if found.is_folder else "NOT the official archive") in found.note
    assert list(tmp_path.iterdir()) == []


def test_a_folder_above_unpacked_files_will_do(cifar10_archive: Path, tmp_path: Path) -> None:
    shutil.copytree(cifar10_archive.parent / "cifar-10-batches-py", tmp_path / "cifar-10-batches-py")
    found = find_archive({"HARNESS_NB_CIFAR10": str(tmp_path)})
    assert found.path == tmp_path / "cifar-10-batches-py"


def test_a_url_of_the_user_is_fetched_once(cifar10_archive: Path, tmp_path: Path) -> None:
    source = tmp_path / "elsewhere.tar.gz"
    shutil.copy(cifar10_archive, source)
    environment = {"HARNESS_NB_CIFAR10": source.as_uri(), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = find_archive(environment)
    source.unlink()
    assert find_archive(environment) == found
    assert len(labels(found.test_batch())) == 100
    assert "NOT the official archive" in found.note


def test_the_official_archive_is_downloaded_checked_and_cached(as_official: Path, tmp_path: Path) -> None:
    first = find_archive({"XDG_CACHE_HOME": str(tmp_path)})
    second = find_archive({"XDG_CACHE_HOME": str(tmp_path)})
    assert first.path == second.path == tmp_path / "harness_nb" / "cifar-10-python.tar.gz"
    assert "downloaded and checked" in first.note and "from the cache" in second.note
    assert first.path.read_bytes() == as_official.read_bytes()


def test_a_damaged_cache_is_replaced(as_official: Path, tmp_path: Path) -> None:
    cached = tmp_path / "harness_nb" / "cifar-10-python.tar.gz"
    cached.parent.mkdir()
    cached.write_bytes(as_official.read_bytes()[:1000])
    assert "downloaded" in find_archive({"XDG_CACHE_HOME": str(tmp_path)}).note
    assert cached.read_bytes() == as_official.read_bytes()


def test_a_download_with_another_checksum_is_refused(
    cifar10_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "OFFICIAL_URL", cifar10_archive.as_uri())
    with pytest.raises(UsageError, match=r"MD5 .* instead of c58f30108f718f92721af3b95e74349a.*HARNESS_NB_CIFAR10"):
        find_archive({"XDG_CACHE_HOME": str(tmp_path)})
    assert list((tmp_path / "harness_nb").iterdir()) == []


@pytest.fixture
def broken_server() -> Iterator[str]:
    """Promises 1,000 bytes and sends 10."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/cifar-10-python.tar.gz"
        thread.join(5)


def test_a_download_that_breaks_off_leaves_nothing(broken_server: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="broke off after 10 of 1,000 bytes"):
        find_archive({"HARNESS_NB_CIFAR10": broken_server, "XDG_CACHE_HOME": str(tmp_path)})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("{tmp}/nothing.tar.gz", "neither cifar-10-python.tar.gz nor"),
        ("{tmp}", "neither cifar-10-python.tar.gz nor"),
        ("file://{tmp}/nothing.tar.gz", "could not be downloaded"),
        ("nonsense://host/file", "could not be downloaded"),
    ],
)
def test_what_is_not_there_is_said(value: str, says: str, tmp_path: Path) -> None:
    environment = {"HARNESS_NB_CIFAR10": value.format(tmp=tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(UsageError, match=says):
        find_archive(environment)


def test_another_layout_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.tar.gz"
    other.write_bytes(b"this is no archive")
    with pytest.raises(UsageError, match="not CIFAR-10 in its official layout"):
        find_archive({"HARNESS_NB_CIFAR10": str(other)}).test_batch()
