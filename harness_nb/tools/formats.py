"""What a file is, by its first bytes: text, a picture, or data that a library loads.

Its name only says how such data is loaded. Used by the reading, writing and picture functions. Standard library only;
runs in the tool kernel.
"""

from __future__ import annotations

from pathlib import Path

from harness_nb.tools.workspace import brief, counted, quoted, shown

HEAD_BYTES = 8192
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
PICTURES = (b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"\xff\xd8\xff")
PICTURE_KINDS = "PNG, JPEG, GIF or WebP"

LOADERS = {
    ".bz2": "bz2.open({}, 'rt')",
    ".db": "sqlite3.connect({})",
    ".feather": "pandas.read_feather({})",
    ".gz": "gzip.open({}, 'rt')",
    ".h5": "h5py.File({})",
    ".hdf5": "h5py.File({})",
    ".joblib": "joblib.load({})",
    ".mat": "scipy.io.loadmat({})",
    ".npy": "numpy.load({})",
    ".npz": "numpy.load({})",
    ".parquet": "pandas.read_parquet({})",
    ".pickle": "pickle.load(open({}, 'rb'))",
    ".pkl": "pickle.load(open({}, 'rb'))",
    ".pt": "torch.load({})",
    ".pth": "torch.load({})",
    ".safetensors": "safetensors.torch.load_file({})",
    ".sqlite": "sqlite3.connect({})",
    ".tar": "tarfile.open({})",
    ".tgz": "tarfile.open({})",
    ".wav": "wave.open({})",
    ".xls": "pandas.read_excel({})",
    ".xlsx": "pandas.read_excel({})",
    ".xz": "lzma.open({}, 'rt')",
    ".zip": "zipfile.ZipFile({})",
}


def is_text(path: Path) -> bool:
    """Whether the file is text, as far as its first 8 KiB tell: no NUL byte, unless it is UTF-16, and no PDF."""
    head = _head(path)
    return head[:2] in BYTE_ORDER_MARKS or (b"\0" not in head and not head.startswith(b"%PDF-"))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def how_to_load(path: Path) -> str:
    """The Python expression that loads a file of data, by its name's ending: ``numpy.load('a.npz')``."""
    name = quoted(shown(path))
    suffix = ".tgz" if path.name.lower().endswith(".tar.gz") else path.suffix.lower()
    return LOADERS.get(suffix, "open({}, 'rb')").format(name)


def refuse_binary(path: Path) -> None:
    """Raise for a file that is no text.

    Raises:
        ValueError: names what shows or loads it.
    """
    if is_text(path):
        return
    head, name, size = _head(path), quoted(shown(path)), counted(path.stat().st_size, "byte")
    if head.startswith(PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        raise brief(ValueError(f"{name} is a picture ({size}), not text; view_image({name}) shows it"))
    raise brief(ValueError(f"{name} is not text ({size}); load it with python: {how_to_load(path)}"))


def no_picture(path: Path) -> ValueError:
    """The error of ``view_image`` for a file that it cannot show; names what reads or loads it."""
    name = quoted(shown(path))
    if not path.stat().st_size:
        return brief(ValueError(f"{name} is empty"))
    if is_text(path):
        message = f"{name} is text, not a {PICTURE_KINDS} picture; read_file({name}) shows it"
    elif path.suffix.lower() in LOADERS:
        message = f"{name} is not a {PICTURE_KINDS} picture; load it with python: {how_to_load(path)}"
    else:
        message = (
            f"{name} is not a {PICTURE_KINDS} picture; if it is one of another kind, save it as PNG with python "
            f"(PIL.Image.open) and view that file"
        )
    return brief(ValueError(message))
