"""The index of a server on this host, read in its memory."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from typing import Optional

from kvcache.errors import KvCacheError

_HEADER = struct.Struct("<8sIIQIIQQQI")
_PROOF_AT = 64
_PAGE = 4096
_LINE_BYTES = 64
_KNOWN = frozenset((3, 6, 7, 8))
"""States of a record whose bytes are in memory, on disk, or on their way from there."""

_MOST_STEPS = 64


def private_directory(path: str) -> str:
    """Checks that only this user can have put files into a directory."""
    there = os.lstat(path)
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or stat.S_IMODE(there.st_mode) != 0o700:
        raise KvCacheError(f"{path} must be a directory on this host, of mode 0700, that belongs to this user")
    return path


def open_file(directory: str, name: str, flags: int) -> int:
    """Opens a regular file of this user in a private directory."""
    if os.path.basename(name) != name or name in ("", ".", ".."):
        raise KvCacheError(f"{name!r} is not the name of a file in {directory}")
    descriptor = os.open(os.path.join(directory, name), flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    there = os.fstat(descriptor)
    if not stat.S_ISREG(there.st_mode) or there.st_uid != os.getuid():
        os.close(descriptor)
        raise KvCacheError(f"{name} in {directory} is not a regular file of this user")
    return descriptor


class SharedIndex:
    """Look-ups of keys without a message. Safe for several threads.

    A look-up beside a change may miss a key. What it finds may be gone a moment later, so a found key is a promise
    of nothing: the server decides when it copies.
    """

    def __init__(self, directory: str, records: str, epoch: int) -> None:
        self.directory = private_directory(directory)
        descriptor = open_file(directory, records, os.O_RDONLY)
        try:
            self._map = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        magic, version, state, found, count, self._buckets, heads, lines, _, page = _HEADER.unpack_from(self._map, 0)
        if magic != b"KVCINDEX" or version != 1 or found != epoch or page != _PAGE:
            raise KvCacheError(f"{records} in {directory} is not the index of this server, version 1")
        if state != 1:
            raise KvCacheError(f"the server of {directory} is closed")
        self.proof = bytes(self._map[_PROOF_AT : _PROOF_AT + 16])
        view = memoryview(self._map)
        self._heads = view[heads : heads + 4 * self._buckets].cast("i")
        self._lines = view[lines : lines + _LINE_BYTES * count].cast("Q")

    def contains(self, digest: bytes) -> bool:
        """Returns whether a key is in memory or on a disk.

        :param digest: of the key, see ``Namespace.digest``; its first 16 bytes count
        """
        high = int.from_bytes(digest[:8], "big")
        low = int.from_bytes(digest[8:16], "big")
        lines = self._lines
        record = self._heads[(low * self._buckets) >> 64]
        for _ in range(_MOST_STEPS):
            if record < 0:
                return False
            at = record << 3
            if lines[at + 1] == low and lines[at] == high and ((lines[at + 2] >> 24) & 0xFF) in _KNOWN:
                return True
            record = lines[at + 5] & 0xFFFFFFFF
            if record & 0x80000000:
                return False
        return False


def try_open(directory: str, records: str, epoch: int) -> Optional[SharedIndex]:
    """Returns the index, or None where this process cannot map it, as on another host."""
    try:
        return SharedIndex(directory, records, epoch)
    except (OSError, KvCacheError, ValueError):
        return None
