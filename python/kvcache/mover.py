"""Moves an engine's pages: through a region where the server maps them, over the connection elsewhere."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Sequence
from typing import Callable, Dict, List, Optional, Tuple

from kvcache.client import Client, Namespace, Region, Result
from kvcache.errors import KvCacheError
from kvcache.memory import Mapping, buffer_at, locate

Piece = Tuple[int, int]
"""Address and size of a piece of a page in this process."""

Value = Tuple[bytes, Sequence[Piece]]

_THREADS = 4


class Mover:
    """Stores and loads pages that lie in pieces anywhere in this process's memory.

    A page of one shared mapping goes through a region of the server. Other pages, and all where the server is on
    another host, are sent and received by a few threads.

    Threads: any. ``submit`` never waits.
    """

    def __init__(self, client: Client, namespace: Namespace) -> None:
        self.client = client
        self.namespace = namespace
        self._lock = threading.Lock()
        self._mappings: List[Mapping] = []
        self._regions: Dict[Mapping, Region] = {}
        self._threads: Optional[concurrent.futures.ThreadPoolExecutor] = None

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
            if not pieces or any(size < 1 for _, size in pieces):
                raise ValueError(f"pieces = {pieces!r:.100}; allowed: one and more, each of a byte and more")
        placed = self._place(values)
        if placed is None:
            self._send(store, values, done)
            return
        region, spans = placed
        submit = self.namespace.submit_store if store else self.namespace.submit_load
        submit(region, spans, on_done=lambda job: done(job.results, job.error))

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

        def work() -> None:
            results: List[Result] = []
            error: Optional[KvCacheError] = None
            try:
                results.extend((self._put if store else self._get)(key, pieces) for key, pieces in values)
            except KvCacheError as failed:
                error = failed
            except Exception as failed:
                error = KvCacheError(f"{type(failed).__name__}: {failed}")
            done([] if error is not None else results, error)

        try:
            threads.submit(work)
        except RuntimeError:
            done([], KvCacheError("the mover is closed"))

    def _put(self, key: bytes, pieces: Sequence[Piece]) -> Result:
        if self.namespace.contains(key):
            return Result.PRESENT
        buffers = [buffer_at(address, size) for address, size in pieces]
        return self.namespace.put(key, buffers[0] if len(buffers) == 1 else b"".join(buffers))

    def _get(self, key: bytes, pieces: Sequence[Piece]) -> Result:
        if len(pieces) == 1:
            if self.namespace.get_into(key, buffer_at(*pieces[0])):
                return Result.COPIED
            return Result.OTHER_SIZE if self.namespace.contains(key) else Result.ABSENT
        value = self.namespace.get(key)
        if value is None:
            return Result.ABSENT
        if len(value) != sum(size for _, size in pieces):
            return Result.OTHER_SIZE
        data = memoryview(value)
        at = 0
        for address, size in pieces:
            buffer_at(address, size)[:] = data[at : at + size]
            at += size
        return Result.COPIED

    def run(self, store: bool, values: Sequence[Value], timeout: float) -> List[Result]:
        """Moves pages and waits for them. Raises the error of all."""
        finished = threading.Event()
        outcome: List[Tuple[List[Result], Optional[KvCacheError]]] = []

        def done(results: List[Result], error: Optional[KvCacheError]) -> None:
            outcome.append((results, error))
            finished.set()

        placed = self._place(values)
        if placed is not None:
            submit = self.namespace.submit_store if store else self.namespace.submit_load
            return self.client.wait(submit(*placed))
        self._send(store, values, done)
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
