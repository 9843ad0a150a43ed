"""A filter of system calls (seccomp(2), mode 2): what no tool code needs and what reaches around namespaces.

Refused are the kernel's keyrings, kinds of sockets that no network namespace holds back (VSOCK, packet, kernel crypto),
io_uring, mounts and new namespaces, loading into the kernel, and putting words into a terminal's input. The program is
classic BPF (linux/filter.h). Runs inside the sandbox; standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

PR_SET_SECCOMP, MODE_FILTER = 22, 2
ALLOW, FAIL = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
"""Offsets in struct seccomp_data: of the call, the architecture, the low halves of two arguments (little endian)."""

LOAD, EQUAL, AT_LEAST, SOME_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32 = 0x40000000
NEW_NAMESPACES = 0x7E020080
"""CLONE_NEW* flags for mount, cgroup, uts, ipc, user, pid, net and time."""

INPUT_IOCTLS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""

LOCAL = (1, 16)
"""AF_UNIX, and AF_NETLINK, by which libraries (zmq among them) ask for the machine's addresses."""

INTERNET = (2, 10)
"""AF_INET and AF_INET6."""

CALLS: dict[str, tuple[int, int]] = {
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "setns": (308, 268),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89), "quotactl": (179, 60),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "open_by_handle_at": (304, 265), "chroot": (161, 51),
    "syslog": (103, 116),
}  # fmt: skip
"""Refused with EPERM, by their numbers on x86_64 and aarch64 (unistd_64.h, asm-generic/unistd.h)."""

SOCKET, IOCTL, CLONE, CLONE3, UNSHARE = (41, 198), (16, 29), (56, 220), (435, 435), (272, 97)

Instruction = tuple[int, int, int, int]


def supported() -> bool:
    """Whether the numbers of this architecture are known."""
    return platform.machine() in AUDIT


def program(machine: str, *, network: bool) -> list[Instruction]:
    """The filter for an architecture: (code, jump if true, jump if false, value). ``network`` allows IP sockets."""
    column = list(AUDIT).index(machine)
    allow, refuse = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL | errno.EPERM)
    code: list[Instruction] = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, AUDIT[machine]), refuse, (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":
        code += [(AT_LEAST, 0, 1, X32), refuse]
    for numbers in CALLS.values():
        code += [(EQUAL, 0, 1, numbers[column]), refuse]
    code += [(EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, FAIL | errno.ENOSYS)]  # its flags cannot be seen
    for numbers in (CLONE, UNSHARE):
        code += [(EQUAL, 0, 4, numbers[column]), (LOAD, 0, 0, FIRST), (SOME_BITS, 0, 1, NEW_NAMESPACES), refuse, allow]
    code += [(EQUAL, 0, 6, IOCTL[column]), (LOAD, 0, 0, SECOND)]
    for request in INPUT_IOCTLS:
        code += [(EQUAL, 0, 1, request), refuse]
    code += [allow, (EQUAL, 1, 0, SOCKET[column]), allow, (LOAD, 0, 0, FIRST)]
    for family in (*LOCAL, *INTERNET) if network else LOCAL:
        code += [(EQUAL, 0, 1, family), allow]
    for family in INTERNET if not network else ():
        code += [(EQUAL, 0, 1, family), (RETURN, 0, 0, FAIL | errno.ENETUNREACH)]
    return [*code, refuse]


def install(*, network: bool) -> None:
    """Filter the calls of this process and of all that it starts, for good. It must have given up privileges before.

    Raises:
        OSError: where the architecture is not known or the kernel refuses.
    """
    if not supported():
        raise OSError(f"no numbers of system calls are known for {platform.machine()}")
    code = b"".join(struct.pack("HBBI", *line) for line in program(platform.machine(), network=network))
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
