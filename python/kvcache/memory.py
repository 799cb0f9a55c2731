"""Which file lies behind a piece of this process's memory."""

from __future__ import annotations

import ctypes
import os
from typing import NamedTuple, Optional, Tuple


class Mapping(NamedTuple):
    """A shared mapping of this process, and the file that another process of this user can map for the same bytes."""

    begin: int
    end: int
    path: str
    offset: int
    """Where the mapping begins in the file."""
    file: Tuple[int, int]
    """Device and inode, as names are used again."""

    def contains(self, address: int, size: int) -> bool:
        """Returns whether a span lies in this mapping."""
        return self.begin <= address and address + size <= self.end

    def offset_of(self, address: int) -> int:
        """Returns where an address of this mapping lies in the file."""
        return address - self.begin + self.offset


def address_of(buffer: memoryview) -> int:
    """Returns the address of a writable, contiguous buffer."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def buffer_at(address: int, size: int) -> memoryview:
    """Shows memory whose owner keeps it alive."""
    return memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")


def locate(address: int, size: int = 1) -> Optional[Mapping]:
    """Finds the shared mapping that a span lies in.

    A file in ``/dev/shm`` is named by its path. A memfd, or a file that was unlinked, is named by a descriptor of
    this process that still refers to it. Returns None for private memory, for a span of several mappings, and where
    no name can be found.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(None, 5)
            begin, end = (int(each, 16) for each in fields[0].split("-"))
            if begin <= address < end:
                if address + size > end or "s" not in fields[1] or len(fields) < 6:
                    return None
                major, minor = (int(each, 16) for each in fields[3].split(":"))
                file = (os.makedev(major, minor), int(fields[4]))
                path = _name(fields[5], file)
                return None if path is None else Mapping(begin, end, path, int(fields[2], 16), file)
    return None


def _name(path: str, file: Tuple[int, int]) -> Optional[str]:
    """Returns a path that leads to a file, which is told by its device and inode."""
    if _is(path, file):
        return path
    for name in os.listdir("/proc/self/fd"):
        if _is(f"/proc/self/fd/{name}", file):
            return f"/proc/{os.getpid()}/fd/{name}"
    return None


def _is(path: str, file: Tuple[int, int]) -> bool:
    try:
        there = os.stat(path)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == file
