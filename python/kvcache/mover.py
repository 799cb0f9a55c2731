"""Moves an engine's pages: through a region where the server maps them, over the connection elsewhere."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import ctypes
import mmap
import operator
import os
import struct
import threading
import time
from collections.abc import Sequence
from typing import Callable, Deque, Dict, List, Optional, Tuple

from kvcache import wire
from kvcache.client import Client, Namespace, Region, Result
from kvcache.connection import Connection, Reply
from kvcache.errors import KvCacheError
from kvcache.memory import Mapping, address_of, buffer_at, locate

Piece = Tuple[int, int]
"""Address and size of a piece of a page in this process."""

Value = Tuple[bytes, Sequence[Piece]]

_THREADS = 4
"""That send and receive, each over a connection of its own."""

_PART_BYTES = 4 << 20
"""A task is divided among threads, so many bytes each at least."""

_WINDOW_BYTES = 16 << 20
"""On their way over one connection."""

_PASSAGE_BYTES = 4 << 20
"""Of each of the two buffers that a thread shares with the server; the largest value that goes through them."""

_PASSAGE_VALUES = 256
"""That are in a buffer at a time."""

_SIZE = operator.itemgetter(1)
"""Of a piece."""

_LEASES = 32
"""Values that were received are released together."""

_NO_CHECKSUM = struct.pack("<II", 0, wire.NO_CHECKSUM)


def check_pieces(pieces: Sequence[Piece]) -> None:
    """Checks the pieces of a page."""
    if not pieces or any(size < 1 for _, size in pieces):
        raise ValueError(f"pieces = {pieces!r:.100}; allowed: one and more, each of a byte and more")


class Mover:
    """Stores and loads pages that lie in pieces anywhere in this process's memory.

    A page of one shared mapping goes through a region of the server. Other pages are moved by a few threads: copied
    through memory of their own that the server maps, where they are small and it can, and else sent and received.

    Threads: any. ``submit`` never waits.
    """

    def __init__(self, client: Client, namespace: Namespace) -> None:
        self.client = client
        self.namespace = namespace
        self._lock = threading.Lock()
        self._mappings: List[Mapping] = []
        self._regions: Dict[Mapping, Region] = {}
        self._threads: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._mine = threading.local()
        self._passages: List[_Passage] = []

    def add(self, address: int, size: int = 1) -> bool:
        """Registers the mapping around an address, before pages of it are moved. May wait for the server.

        The memory stays mapped until the mover is closed. Memory that was mapped anew has to be added again.

        :return: False where the memory is no shared mapping of a file, so that its pages are sent
        """
        found = locate(address, size)
        if found is None:
            self._forget(address, address + size)
            return False
        if found in self._mappings:
            return True
        region = self.client._register_region(found.path, address)
        self._forget(found.begin, found.end)
        with self._lock:
            self._regions[found] = region
            self._mappings = [*self._mappings, found]
        return True

    def remove(self, address: int) -> None:
        """Takes memory back that was added. May wait for the server."""
        self._forget(address, address + 1)

    @property
    def maps(self) -> bool:
        """Whether memory was added, and the server maps all of it."""
        regions = list(self._regions.values())
        return self.client.shares_memory and bool(regions) and all(each.error is None for each in regions)

    def _forget(self, begin: int, end: int) -> None:
        """Drops mappings that lie where another one is now."""
        for old in [each for each in self._mappings if each.begin < end and begin < each.end]:
            self._mappings = [each for each in self._mappings if each != old]
            self._regions.pop(old).close()

    def _mapping(self, address: int, size: int) -> Optional[Mapping]:
        for mapping in self._mappings:
            if mapping.contains(address, size):
                return mapping
        return None

    def submit(
        self, store: bool, values: Sequence[Value], done: Callable[[List[Result], Optional[KvCacheError]], None]
    ) -> None:
        """Begins to move pages.

        :param done: hears the result of each value, or the error of all, once, in any thread; it may not wait
        """
        for _, pieces in values:
            check_pieces(pieces)
        placed = self._place(values)
        if placed is None:
            self._send(store, values, done)
            return
        region, spans = placed
        submit = self.namespace.submit_store if store else self.namespace.submit_load
        parts = _messages(spans)
        gathered = _Gathered(len(parts), done)
        for number, part in enumerate(parts):
            submit(region, part, on_done=lambda job, number=number: gathered.take(number, job.results, job.error))  # type: ignore[misc]

    def _place(self, values: Sequence[Value]) -> Optional[Tuple[Region, List[Tuple[bytes, List[Piece]]]]]:
        """Returns the one region of all pieces and their places in it, or None."""
        if not values or not self._mappings:
            return None
        mapping = self._mapping(*values[0][1][0])
        if mapping is None:
            return None
        region = self._regions[mapping]
        if region.error is not None:
            return None
        begin, end, shift = mapping.begin, mapping.end, mapping.offset - mapping.begin
        placed = []
        for key, pieces in values:
            spans = []
            for address, size in pieces:
                if address < begin or address + size > end:
                    return None
                spans.append((address + shift, size))
            placed.append((key, spans))
        return region, placed

    def _send(
        self, store: bool, values: Sequence[Value], done: Callable[[List[Result], Optional[KvCacheError]], None]
    ) -> None:
        with self._lock:
            if self._threads is None:
                self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "kvcache-mover")
            threads = self._threads
        size = sum(each for _, pieces in values for _, each in pieces)
        count = max(1, min(_THREADS, len(values), size // _PART_BYTES))
        parts = [values[len(values) * at // count : len(values) * (at + 1) // count] for at in range(count)]
        gathered = _Gathered(count, done)

        def work(number: int) -> None:
            results: List[Result] = []
            error: Optional[KvCacheError] = None
            try:
                results = self._move(store, parts[number])
            except KvCacheError as failed:
                error = failed
            except Exception as failed:
                error = KvCacheError(f"{type(failed).__name__}: {failed}")
            gathered.take(number, results, error)

        for number in range(count):
            try:
                threads.submit(work, number)
            except RuntimeError:
                gathered.take(number, [], KvCacheError("the mover is closed"))

    def _move(self, store: bool, values: Sequence[Value]) -> List[Result]:
        """Moves values in one of the threads: through memory that the server maps, where it can, else over a connection."""
        connection = self._connected()
        passage = self._passage() if self.client.shares_memory else None
        if passage is None:
            return (_put_all if store else _get_all)(connection, self.namespace, values)
        small = [number for number, (_, pieces) in enumerate(values) if sum(map(_SIZE, pieces)) <= _PASSAGE_BYTES]
        large = sorted(set(range(len(values))).difference(small))
        results = [Result.ABSENT] * len(values)
        try:
            for number, result in zip(small, passage.move(store, connection, [values[each] for each in small])):
                results[number] = result
        except BaseException:
            self._mine.passage = None  # the server may still copy from and to it
            with self._lock:
                self._passages.remove(passage)
            passage.close()
            raise
        if large:
            sent = (_put_all if store else _get_all)(connection, self.namespace, [values[each] for each in large])
            for number, result in zip(large, sent):
                results[number] = result
        return results

    def _passage(self) -> Optional[_Passage]:
        """Returns this thread's own memory that the server maps, or None where it maps none of this process."""
        passage = getattr(self._mine, "passage", None)
        if passage is None:
            try:
                passage = self._mine.passage = _Passage(self.client, self.namespace)
            except (KvCacheError, OSError):
                return None  # a system without memfds, or where no process sees another one's files
            with self._lock:
                self._passages.append(passage)
        return passage if passage.region.error is None else None

    def _connected(self) -> Connection:
        """Returns this thread's own connection of the session."""
        control = self.client._connected()
        of, connection = getattr(self._mine, "connections", (None, None))
        if of is control and connection is not None and connection.lost is None:
            return connection
        connection = self.client._join(control)
        self._mine.connections = control, connection
        return connection

    def run(self, store: bool, values: Sequence[Value], timeout: float) -> List[Result]:
        """Moves pages and waits for them. Raises the error of all."""
        finished = threading.Event()
        outcome: List[Tuple[List[Result], Optional[KvCacheError]]] = []

        def done(results: List[Result], error: Optional[KvCacheError]) -> None:
            outcome.append((results, error))
            finished.set()

        placed = self._place(values)
        if placed is not None:
            region, spans = placed
            submit = self.namespace.submit_store if store else self.namespace.submit_load
            jobs = [submit(region, part) for part in _messages(spans)]
            failures: List[KvCacheError] = []
            for job in jobs:  # all of them: the pages are the server's until each is done
                try:
                    self.client.wait(job)
                except KvCacheError as failed:
                    failures.append(failed)
            if failures:
                raise failures[0]
            return [each for job in jobs for each in job.results]
        self.submit(store, values, done)
        if not finished.wait(timeout * max(1, len(values))):
            raise KvCacheError("the pages were not moved in time")
        results, error = outcome[0]
        if error is not None:
            raise error
        return results

    def close(self) -> None:
        """Ends the threads; what they move now is finished."""
        if self._threads is not None:
            self._threads.shutdown(wait=True)
        for passage in self._passages:
            passage.close()


class _Gathered:
    """The results of a task that is moved in parts."""

    def __init__(self, parts: int, done: Callable[[List[Result], Optional[KvCacheError]], None]) -> None:
        self._lock = threading.Lock()
        self._left = parts
        self._results: List[List[Result]] = [[] for _ in range(parts)]
        self._error: Optional[KvCacheError] = None
        self._done = done

    def take(self, part: int, results: List[Result], error: Optional[KvCacheError]) -> None:
        """Takes the results of one part, once. The last one ends the task."""
        with self._lock:
            self._results[part] = results
            self._error = self._error or error
            self._left -= 1
            if self._left:
                return
        self._done([] if self._error else [each for part in self._results for each in part], self._error)


def _messages(values: Sequence[Value]) -> List[Sequence[Value]]:
    """Divides values among as many messages as their keys and pieces need."""
    parts: List[List[Value]] = []
    size = wire.MAX_BODY_BYTES
    for value in values:
        more = 8 + len(value[0]) + 16 * len(value[1])
        size += more
        if size > wire.MAX_BODY_BYTES // 2 or len(parts[-1]) == wire.MAX_KEYS:
            parts.append([])
            size = more
        parts[-1].append(value)
    return list(parts)


class _Passage:
    """Two buffers that the server maps, by which one thread passes it values whose own memory it does not map."""

    def __init__(self, client: Client, namespace: Namespace) -> None:
        self._client = client
        self._namespace = namespace
        self._file = os.memfd_create("kvcache-mover", os.MFD_CLOEXEC)
        os.ftruncate(self._file, 2 * _PASSAGE_BYTES)
        self._map = memoryview(mmap.mmap(self._file, 2 * _PASSAGE_BYTES))
        self._address = address_of(self._map)
        self.region, self._begin = client.region_of(self._map)

    def move(self, store: bool, connection: Connection, values: Sequence[Value]) -> List[Result]:
        """Moves values, of a buffer's size at most each. One buffer is filled or emptied while the server has the other."""
        results = [Result.PRESENT] * len(values)
        sent: Deque[Tuple[List[int], int, Reply]] = collections.deque()
        timeout = self._client.timeout

        def take() -> None:
            numbers, at, reply = sent.popleft()
            connection.wait(reply, timeout + 1)
            for number, result in zip(numbers, wire.copy_results(reply.value())):
                results[number] = result
                pieces = values[number][1]
                if not store and result == Result.COPIED:
                    self._copy(pieces, at, False)
                at += sum(map(_SIZE, pieces))

        def pass_on(numbers: List[int], at: int) -> None:
            items: List[Tuple[bytes, List[Piece]]] = []
            begin = at
            for number in numbers:
                key, pieces = values[number]
                size = sum(map(_SIZE, pieces))
                if store:
                    self._copy(pieces, at, True)
                items.append((key, [(self._begin + at, size)]))
                at += size
            reply = Reply(time.monotonic() + timeout + 1)
            body = self._client._copy_body(self._namespace, self.region, int(store), items, timeout)
            connection.send(wire.COPY, body, reply, None, int(timeout * 1e9))
            sent.append((numbers, begin, reply))

        left = [n for n in range(len(values)) if not (store and self._namespace.contains_now(values[n][0]))]
        buffer = 0
        while left:
            size, count = 0, 0
            while count < len(left) and count < _PASSAGE_VALUES:
                size += sum(map(_SIZE, values[left[count]][1]))
                if size > _PASSAGE_BYTES:
                    break
                count += 1
            if len(sent) == 2:
                take()
            pass_on(left[:count], buffer * _PASSAGE_BYTES)
            left = left[count:]
            buffer = 1 - buffer
        while sent:
            take()
        return results

    def _copy(self, pieces: Sequence[Piece], at: int, into: bool) -> None:
        for address, size in pieces:
            mine = self._address + at
            ctypes.memmove(*((mine, address) if into else (address, mine)), size)
            at += size

    def close(self) -> None:
        """Lets go of the memory; what the server still copies does no harm."""
        with contextlib.suppress(KvCacheError):
            self.region.close()
        os.close(self._file)


class _Window:
    """Requests on their way over a connection that one thread has for itself; so many bytes at a time."""

    def __init__(self, connection: Connection, timeout: float, hear: Callable[[int, Reply], None]) -> None:
        self._connection = connection
        self._timeout = timeout
        self._hear = hear
        self._sent: Deque[Tuple[int, Reply, int]] = collections.deque()
        self._bytes = 0

    def send(self, number: int, kind: int, body: bytes, reply: Reply, size: int, data: Sequence[memoryview] = ()) -> None:
        """Sends one, after waiting until there is room for its bytes."""
        while self._sent and self._bytes + size > _WINDOW_BYTES:
            self._wait()
        self._connection.send(kind, body, reply, None, int(self._timeout * 1e9), data)
        self._sent.append((number, reply, size))
        self._bytes += size

    def _wait(self) -> None:
        number, reply, size = self._sent.popleft()
        self._bytes -= size
        self._connection.wait(reply, self._timeout)
        self._hear(number, reply)

    def finish(self) -> None:
        """Waits for all."""
        while self._sent:
            self._wait()

    def reply(self, into: Optional[memoryview] = None, follows: Optional[Callable[[bytes], bool]] = None) -> Reply:
        return Reply(time.monotonic() + self._timeout, into, follows)


def _put_all(connection: Connection, namespace: Namespace, values: Sequence[Value]) -> List[Result]:
    """Stores values, many at a time. A value that the shared index shows is not sent again."""
    results = [Result.PRESENT] * len(values)

    def hear(number: int, reply: Reply) -> None:
        results[number] = wire.put_result(reply.value())

    window = _Window(connection, namespace._client.timeout, hear)
    for number, (key, pieces) in enumerate(values):
        if namespace.contains_now(key):
            continue
        body = namespace._item_head(key) + _NO_CHECKSUM + key
        data = [buffer_at(address, size) for address, size in pieces]
        window.send(number, wire.PUT_OBJECT, body, window.reply(), sum(size for _, size in pieces), data)
    window.finish()
    return results


def _get_all(connection: Connection, namespace: Namespace, values: Sequence[Value]) -> List[Result]:
    """Loads values, many at a time; those that are on a disk, or had to wait, one by one after the others."""
    results = [Result.ABSENT] * len(values)
    leases: List[int] = []
    missing: List[int] = []

    def give_back() -> None:
        if leases:
            connection.send(wire.RELEASE, struct.pack(f"<II{len(leases)}Q", len(leases), 0, *leases), None)
            leases.clear()

    def hear(number: int, reply: Reply) -> None:
        (lease,) = struct.unpack_from("<Q", reply.value())
        if lease:
            leases.append(lease)
        if reply.data is None:
            missing.append(number)
        else:
            results[number] = _scatter(reply.data, values[number][1])
        if len(leases) >= _LEASES:
            give_back()

    window = _Window(connection, namespace._client.timeout, hear)
    for number, (key, pieces) in enumerate(values):
        into = buffer_at(*pieces[0]) if len(pieces) == 1 else None
        reply = window.reply(into, lambda answer: answer[16] == 1)
        body = namespace._get_body(key, True, False, 0)
        window.send(number, wire.GET_OBJECT, body, reply, sum(size for _, size in pieces))
    window.finish()
    give_back()

    here: List[int] = []
    asked = _Window(connection, namespace._client.timeout, lambda number, reply: here.extend([number] * reply.value()[0]))
    for number in missing:
        asked.send(number, wire.CONTAINS_OBJECT, namespace._item(values[number][0]), asked.reply(), 0)
    asked.finish()
    for number in here:
        key, pieces = values[number]
        data = namespace._get_from_disk(key, buffer_at(*pieces[0]) if len(pieces) == 1 else None)
        if data is not None:
            results[number] = _scatter(data, pieces)
    return results


def _scatter(data: memoryview, pieces: Sequence[Piece]) -> Result:
    """Copies what was received to where it is wanted, unless it lies there already."""
    if data.nbytes != sum(size for _, size in pieces):
        return Result.OTHER_SIZE
    if len(pieces) == 1 and address_of(data) == pieces[0][0]:
        return Result.COPIED
    at = 0
    for address, size in pieces:
        buffer_at(address, size)[:] = data[at : at + size]
        at += size
    return Result.COPIED
