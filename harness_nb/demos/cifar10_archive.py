"""Finds the CIFAR-10 archive: named by the user, cached, or downloaded from its official address with its checksum.

The archive is "CIFAR-10 python version" of https://www.cs.toronto.edu/~kriz/cifar.html (Krizhevsky 2009); its layout is
the folder ``cifar-10-batches-py`` with ``data_batch_1`` to ``data_batch_5``, ``test_batch``, ``batches.meta``. Called
by ``cifar10_demo``; must not import torch.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness_nb.demos.pick import ARCHIVE_NAME, ARCHIVE_VARIABLE, cache_folder
from harness_nb.errors import UsageError

OFFICIAL_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
OFFICIAL_MD5 = "c58f30108f718f92721af3b95e74349a"
FOLDER = "cifar-10-batches-py"
TEST_BATCH = "test_batch"
TIMEOUT = 60.0
"""Seconds without a byte after which a download is given up."""

WAY_OUT = f"Get {ARCHIVE_NAME} in another way and set {ARCHIVE_VARIABLE} to its path."


@dataclass(frozen=True, slots=True)
class Archive:
    """Where the data is: an archive file, or the folder with its files. ``note`` says it to the person."""

    path: Path
    note: str

    @property
    def is_folder(self) -> bool:
        """Whether it is unpacked already."""
        return self.path.is_dir()

    def test_batch(self) -> bytes:
        """The file ``test_batch``, as it is.

        Raises:
            UsageError: if the archive has none, or cannot be read.
        """
        try:
            if self.is_folder:
                return (self.path / TEST_BATCH).read_bytes()
            with tarfile.open(self.path) as tar:
                member = tar.extractfile(f"{FOLDER}/{TEST_BATCH}")
                assert member is not None
                return member.read()
        except (OSError, EOFError, KeyError, AssertionError, tarfile.TarError) as error:
            layout = f"{FOLDER}/{TEST_BATCH}"
            raise UsageError(f"{self.path} is not CIFAR-10 in its official layout ({layout}): {error}") from error

    def copy_to(self, folder: Path) -> None:
        """Put the archive, or the unpacked folder, into the new folder ``folder``."""
        folder.mkdir()
        if self.is_folder:
            shutil.copytree(self.path, folder / FOLDER)
        else:
            shutil.copyfile(self.path, folder / ARCHIVE_NAME)


def find_archive(environment: Mapping[str, str]) -> Archive:
    """The archive that ``HARNESS_NB_CIFAR10`` names (path or URL), else the cached one, else a fresh download.

    What the user names is taken with any checksum, and the note says so; the cache and the official address must have
    the official one.

    Raises:
        UsageError: if nothing is there, or it cannot be downloaded, or it is damaged.
    """
    given, cache = environment.get(ARCHIVE_VARIABLE), cache_folder(environment)
    if given and "://" in given:
        name = hashlib.sha256(given.encode()).hexdigest()[:12]
        return _described(_download(given, cache / name / ARCHIVE_NAME, md5=None))
    if given:
        return _described(_given_path(Path(given).expanduser().resolve()))
    cached = cache / ARCHIVE_NAME
    if cached.is_file() and _md5(cached) == OFFICIAL_MD5:
        return Archive(cached, f"the official archive, from the cache: {cached}")
    _download(OFFICIAL_URL, cached, md5=OFFICIAL_MD5)
    return Archive(cached, f"the official archive, downloaded and checked, now cached at {cached}")


def _given_path(path: Path) -> Path:
    """The archive file or the folder of its files that a path means: itself, or what is right below it."""
    if path.is_file() or (path / TEST_BATCH).is_file():
        return path
    if (path / ARCHIVE_NAME).is_file():
        return path / ARCHIVE_NAME
    if (path / FOLDER / TEST_BATCH).is_file():
        return path / FOLDER
    raise UsageError(f"{ARCHIVE_VARIABLE} is {path}, and there is neither {ARCHIVE_NAME} nor {FOLDER}.")


def _described(path: Path) -> Archive:
    if path.is_dir():
        return Archive(path, f"the unpacked files in {path}, which are not checked against the official archive")
    if _md5(path) == OFFICIAL_MD5:
        return Archive(path, f"the official archive: {path}")
    return Archive(path, f"{path}, which is NOT the official archive (its MD5 differs); say so with every figure")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _download(url: str, target: Path, md5: str | None) -> Path:
    """Fetch ``url`` into ``target``, which appears only when it is whole; without ``md5`` an earlier one is kept."""
    if md5 is None and target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response, part.open("wb") as file:
            print(f"downloading {url} to {target} ...", file=sys.stderr, flush=True)
            shutil.copyfileobj(response, file, 1 << 20)
            expected = int(response.headers.get("Content-Length") or file.tell())
            if file.tell() != expected:
                raise OSError(f"it broke off after {file.tell():,} of {expected:,} bytes")
        if md5 and (found := _md5(part)) != md5:
            raise UsageError(f"What {url} gave is not the official archive: MD5 {found} instead of {md5}. {WAY_OUT}")
        part.replace(target)
    except (OSError, ValueError) as error:
        raise UsageError(f"{url} could not be downloaded: {error}. {WAY_OUT}") from error
    finally:
        part.unlink(missing_ok=True)
    return target
