"""The index of a server on this host, read in its memory."""

from __future__ import annotations

import collections
import mmap
import os
import stat
import struct
import threading
from typing import Deque, List, Optional, Tuple

from kvcache.errors import KvCacheError

_HEADER = struct.Struct("<8sIIQIIQQQII")
_PROOF_AT = 64
_PAGE = 4096
_LINE_BYTES = 64
_KEY = struct.Struct(">QQ")
_STATE_AT = 12
_SERVING = 1
_FREE, _DELETED = 0, 5
_SEALED = 1 << 3
_KNOWN = _SEALED | 1 << 6 | 1 << 7 | 1 << 8
"""States of a record whose bytes are in memory, on disk, or on their way from there; a bit each."""

_PLACE = 0xFFFF << 48 | 0xFFFFFFFF
_FOUND, _MISSING, _UNSURE = 1, 0, -1
_MOST_STEPS = 64
_MOST_ATTEMPTS = 8


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


class Stage:
    """Memory of a server that this process writes values into, before a request names them.

    Parts are taken one behind the other around the end, and are free again once all before them are given back.

    Threads: any.
    """

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        self._changed = threading.Condition()
        self._parts: Deque[List[int]] = collections.deque()
        """Where each begins and ends, and whether it was given back."""

    def take(self, size: int, seconds: float) -> Optional[int]:
        """Returns where a part begins, or None where there is no room within so many seconds."""
        if size > self.memory.nbytes:
            return None
        with self._changed:
            if not self._changed.wait_for(lambda: self._place(size) is not None, seconds):
                return None
            at = self._place(size)
            assert at is not None
            self._parts.append([at, at + size, 0])
            return at

    def _place(self, size: int) -> Optional[int]:
        if not self._parts:
            return 0
        first, last = self._parts[0][0], self._parts[-1][1]
        if last > first:
            if last + size <= self.memory.nbytes:
                return last
            return 0 if size <= first else None
        return last if last + size <= first else None

    def give(self, at: int) -> None:
        """Gives the part back that begins there."""
        with self._changed:
            for part in self._parts:
                if part[0] == at and not part[2]:
                    part[2] = 1
                    break
            while self._parts and self._parts[0][2]:
                self._parts.popleft()
            self._changed.notify_all()


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
        header = _HEADER.unpack_from(self._map, 0)
        magic, version, state, found, count, self._buckets, heads, lines, _, page, devices = header
        if magic != b"KVCINDEX" or version != 1 or found != epoch or page != _PAGE:
            raise KvCacheError(f"{records} in {directory} is not the index of this server, version 1")
        if state != 1:
            raise KvCacheError(f"the server of {directory} is closed")
        self.has_device = devices != 0
        """Whether blocks may be on a GPU, which the index does not show."""
        self.proof = bytes(self._map[_PROOF_AT : _PROOF_AT + 16])
        view = memoryview(self._map)
        self._heads = view[heads : heads + 4 * self._buckets].cast("i")
        self._lines = view[lines : lines + _LINE_BYTES * count].cast("Q")

    def contains(self, digest: bytes) -> bool:
        """Returns whether a key is in memory or on a disk.

        :param digest: of the key, see ``Namespace.key_digest``; its first 16 bytes count
        """
        high, low = _KEY.unpack_from(digest)
        return self._find(high, low, _KNOWN, None) == _FOUND

    def match(self, keys: bytearray, step: int, namespace: int) -> Optional[Tuple[int, int]]:
        """Returns how many leading blocks of a chain are in memory, and how many more on a disk.

        None where records change too often for that, or the server serves no more: then the server must be asked.

        :param keys: of the blocks, one each so many bytes
        :param namespace: its number in the records
        """
        if self._map[_STATE_AT] != _SERVING:
            return None
        length = len(keys) // step
        host = self._prefix(keys, step, namespace, _SEALED, 0, length)
        known = host if host < 0 else self._prefix(keys, step, namespace, _KNOWN, host, length)
        return None if known < 0 else (host, known - host)

    def _prefix(self, keys: bytearray, step: int, namespace: int, states: int, there: int, unknown: int) -> int:
        """A binary search: what is present of a chain is a prefix. The first and the last block are asked before others,
        as most prompts are new or here as a whole. -1 where a look-up could not tell."""
        at, last = there, unknown - 1
        while there < unknown:
            high, low = _KEY.unpack_from(keys, at * step)
            found = self._find(high, low, states, namespace << 48 | at)
            if found == _UNSURE:
                return -1
            if found == _FOUND:
                there = at + 1
            else:
                unknown = at
            at = last if there <= last < unknown else (there + unknown) >> 1
            last = -1
        return there

    def _find(self, high: int, low: int, states: int, place: Optional[int]) -> int:
        for _ in range(_MOST_ATTEMPTS):
            found = self._walk(high, low, states, place)
            if found != _UNSURE:
                return found
        return _UNSURE

    def _walk(self, high: int, low: int, states: int, place: Optional[int]) -> int:
        """Walks the records of a bucket once. UNSURE where one of them changed meanwhile.

        :param states: a bit for each state that counts
        :param place: namespace and depth that a block must have, as in its record without the flags between them
        """
        lines, buckets = self._lines, self._buckets
        bucket = (low * buckets) >> 64
        first = record = self._heads[bucket]
        if record < 0:
            return _MISSING
        passed: List[Tuple[int, int]] = []
        generation = 0
        for _ in range(_MOST_STEPS):
            at = record << 3
            try:
                control = lines[at + 2]
                key_high, key_low, link, where = lines[at], lines[at + 1], lines[at + 5], lines[at + 6]
                changed = lines[at + 2] >> 32 != control >> 32
            except IndexError:
                return _UNSURE
            state = control >> 24 & 0xFF
            if changed or state == _FREE:
                return _UNSURE
            if key_low == low and key_high == high:
                if states >> state & 1:
                    return _FOUND if place is None or where & _PLACE == place else _MISSING
                if state == _DELETED:
                    return _UNSURE
                passed.append((at + 2, control))
            elif (key_low * buckets) >> 64 != bucket:
                return _UNSURE
            if record == first:
                generation = control >> 32
            record = link & 0xFFFFFFFF
            if record & 0x80000000:
                same = self._heads[bucket] == first and lines[(first << 3) + 2] >> 32 == generation
                return _MISSING if same and all(lines[each] == was for each, was in passed) else _UNSURE
        return _UNSURE

    def place(self, handle: int) -> Optional[Tuple[int, int]]:
        """Returns where the bytes of a record lie in the slots, and how many there are; None if it has changed."""
        at = (handle & 0xFFFFFFFF) << 3
        generation = handle >> 32
        try:
            slot = self._lines[at + 4]
            if self._lines[at + 2] >> 32 != generation:
                return None
        except IndexError:
            return None
        return (slot & 0xFFFFFFFF) * _PAGE, slot >> 32


def try_open(directory: str, records: str, epoch: int) -> Optional[SharedIndex]:
    """Returns the index, or None where this process cannot map it, as on another host."""
    try:
        return SharedIndex(directory, records, epoch)
    except (OSError, KvCacheError, ValueError):
        return None
