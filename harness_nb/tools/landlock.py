"""Landlock by raw system calls: a process gives up rights for itself and for all that it will start, for good.

Source: landlock(7) and include/uapi/linux/landlock.h; ABI 1 is in Linux 5.13, 7 in 6.15. Needs no privilege. Runs
inside the sandbox (``confine``); the harness asks ``abi`` too. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
VERSION_FLAG = 1
PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP, LAST_CAPABILITY, CAPABILITY_VERSION = 24, 63, 0x20080522

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""Rights that a file can have; all others are those of a folder."""

READING = EXECUTE | READ_FILE | READ_DIR
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1


def abi() -> int:
    """The version of Landlock here; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG))


def file_rights(version: int) -> int:
    """All rights over files that this version can take away."""
    last = 13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16
    return (1 << last) - 1


def restrict(readable: Iterable[str], writable: Iterable[str], *, tcp: bool = True) -> list[str]:
    """From here on only read what is below ``readable`` and ``writable``, and write what is below ``writable``.

    Capabilities are dropped. Signals to processes outside and their abstract unix sockets are cut off too, where
    Landlock can. ``tcp`` false takes away connecting and binding. Paths that are not there are passed over. Returns
    what is taken away: ``files``, ``tcp``, ``signals``, ``abstract sockets``.

    Raises:
        OSError: where there is no Landlock, or it refuses.
    """
    version = abi()
    if not version:
        raise OSError("this kernel has no Landlock")
    rights = file_rights(version)
    network = 0 if tcp or version < 4 else BIND_TCP | CONNECT_TCP
    scope = ABSTRACT_SOCKETS | SIGNALS if version >= 6 else 0
    attributes = struct.pack("QQQ", rights, network, scope)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _checked(_call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    try:
        drop_capabilities()
        for path in writable:
            _allow(ruleset, path, rights)
        for path in readable:
            _allow(ruleset, path, READING & rights)
        forgo_privileges()
        _checked(_call(RESTRICT_SELF, ctypes.c_int(ruleset), 0))
    finally:
        os.close(ruleset)
    return ["files", *(["tcp"] if network else []), *(["signals", "abstract sockets"] if scope else [])]


def forgo_privileges() -> None:
    """No program that is started from here on gets more rights than this process has: prctl(2), PR_SET_NO_NEW_PRIVS."""
    _checked(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def drop_capabilities() -> None:
    """Give up what root may do beyond other users: capabilities(7), those that programs could get back included."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)  # fails without privileges, which is as good
    header, none = struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24)
    _checked(libc.capset(header, none))


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        kept = rights if Path(path).is_dir() else rights & OF_FILES
        rule = struct.pack("=Qi", kept, descriptor)
        _checked(_call(ADD_RULE, ctypes.c_int(ruleset), PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
