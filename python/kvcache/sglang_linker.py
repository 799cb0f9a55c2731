"""A linker for SGLang's unified cache: pages move between SGLang's device pools and a KVCache server.

Configured by::

    --enable-unified-cache-external-linker --unified-cache-external-linker-backend dynamic
    --unified-cache-external-linker-config
      '{"linker": "KvCacheLinker", "linker_module_path": "kvcache.sglang_linker",
        "linker_extra_config": {"address": "127.0.0.1:7420"}}'

There is no host pool. A page is a value for each pool and each eighth of the layers, so that a forward pass begins when
the first layers are there, while the others are still copied.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import logging
import mmap
import os
import queue
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from sglang.srt.mem_cache.unified_cache.unified_cache_linker import (
    LayerWiseLoadCounter,
    UnifiedCacheLinker,
    device_module,
)

from kvcache import sglang_compat
from kvcache.client import Namespace, Result
from kvcache.cluster import open_mover
from kvcache.errors import KvCacheError
from kvcache.mover import Mover, Value
from kvcache.settings import identity
from kvcache.sglang import Pages

logger = logging.getLogger(__name__)

_FORM = "sglang-layers/1"
_KV = "kv"

_MOST_STEPS = 8
"""In which a page is loaded, some layers each."""

_HALF_BYTES = 32 << 20
"""Of each half of the memory that pages go through."""

_PIN_SECONDS = 10.0
"""How long pages that were found are kept: a load that fails ends its requests."""

_Transfers = List[Any]


class _Piece(NamedTuple):
    """A tensor of a pool: a row for each page."""

    rows: Any
    at: int
    """Where its bytes begin in a value, in elements."""
    width: int


class _Pool:
    """A pool of the device: what a page of it is made of, for each step.

    :param entry: SGLang's view of it
    """

    def __init__(self, entry: Any, layers: int, steps: int) -> None:
        self.entry = entry
        components = zip(entry.components, entry.buffer_meta)
        tensors = [[_paged(entry, tensor, meta) for tensor, meta in zip(*each)] for each in components]
        wide = all(_is_wide(rows) for component in tensors for rows in component)
        self.element = torch.int64 if wide else torch.uint8
        used: set = set()
        self.steps: Dict[int, List[_Piece]] = {}
        self.bytes: Dict[int, int] = {}
        """Of a value, by step."""
        for layer in sorted(entry.layer_mapping):
            mapped = entry.layer_mapping[layer]
            for number, component in enumerate(tensors):
                for at in [mapped] if isinstance(mapped, int) else mapped:
                    if (number, at) not in used:
                        used.add((number, at))
                        self._add(layer * steps // layers, component[at])
        if len(used) != sum(map(len, tensors)):
            raise ValueError(f"kvcache.sglang_linker: of some tensors of the pool {entry.name} no layer is known")

    def _add(self, step: int, rows: Any) -> None:
        rows = rows.view(self.element)
        pieces = self.steps.setdefault(step, [])
        at = pieces[-1].at + pieces[-1].width if pieces else 0
        pieces.append(_Piece(rows, at, rows.shape[1]))
        self.bytes[step] = (at + rows.shape[1]) * rows.element_size()

    def pages(self, indices: Any) -> List[int]:
        """Returns the rows of SGLang's indices."""
        size = self.entry.page_size
        return [int(first) // size for first in self._checked(indices)[::size]]

    def _checked(self, indices: Any) -> Any:
        self.entry.prepare_locations(indices)
        return indices.detach().to(device="cpu", dtype=torch.int64).flatten()

    def gather(self, step: int, rows: Any, into: Any) -> None:
        """Copies pages of the pool into one row each."""
        for piece in self.steps[step]:
            into[:, piece.at : piece.at + piece.width] = piece.rows[rows]

    def scatter(self, step: int, rows: Any, source: Any) -> None:
        """Copies rows into pages of the pool."""
        for piece in self.steps[step]:
            piece.rows.index_copy_(0, rows, source[:, piece.at : piece.at + piece.width])


def _paged(entry: Any, tensor: Any, meta: Tuple[int, int, int]) -> Any:
    """Shows a tensor as bytes, a row for each page."""
    count, page = tensor.shape[0], meta[2]
    span = page * count // tensor.nbytes
    flat = tensor.view(torch.uint8).flatten(1) if tensor.dim() > 1 else tensor.unsqueeze(1).view(torch.uint8)
    if flat.data_ptr() != tensor.data_ptr() or (span > 1 and not flat.is_contiguous()):
        raise ValueError(f"kvcache.sglang_linker: rows of the pool {entry.name} are not contiguous")
    return flat if span == 1 else flat[: count // span * span].view(count // span, page)


def _is_wide(rows: Any) -> bool:
    """Whether 8 bytes can be copied at a time."""
    return all(each % 8 == 0 for each in (rows.data_ptr(), rows.shape[1], rows.stride(0), rows.storage_offset()))


class _Staging:
    """Memory that the server maps, in two halves: the device has one while the server has the other."""

    def __init__(self, mover: Mover, half: int, device: Any) -> None:
        self._mover = mover
        self._file = os.memfd_create("kvcache-linker", os.MFD_CLOEXEC)
        os.ftruncate(self._file, 2 * half)
        whole = torch.frombuffer(mmap.mmap(self._file, 2 * half), dtype=torch.uint8)
        self._pinned = False
        if device.type == "cuda":
            self._pinned = int(torch.cuda.cudart().cudaHostRegister(whole.data_ptr(), 2 * half, 0)) == 0
        self._whole = whole
        self.halves = whole[:half], whole[half:]
        mover.add(whole.data_ptr(), 2 * half)

    def close(self) -> None:
        """Lets go of the memory. What the server still copies does no harm."""
        self._mover.remove(self._whole.data_ptr())
        if self._pinned:
            torch.cuda.cudart().cudaHostUnregister(self._whole.data_ptr())
        os.close(self._file)


class _Chunk(NamedTuple):
    """Values of one pool and step that fit into a half."""

    step: int
    pool: _Pool
    names: List[bytes]
    pages: List[int]


class _Copier:
    """One thread's copies between the device and the server."""

    def __init__(self, mover: Mover, half: int, device: Any, seconds: float) -> None:
        self._mover, self._half, self._device = mover, half, device
        self._seconds = seconds
        self._staging: Optional[_Staging] = None
        self._stream = device_module.Stream()

    def move(self, store: bool, chunks: Sequence[_Chunk]) -> Iterator[Tuple[_Chunk, List[Result]]]:
        """Moves values in order, and tells of each chunk when it was copied."""
        if self._staging is None:
            self._staging = _Staging(self._mover, self._half, self._device)
        running: Deque[Tuple[_Chunk, Any, Any, Future[List[Result]]]] = collections.deque()
        done = False
        try:
            with device_module.stream(self._stream):
                for number, chunk in enumerate(chunks):
                    if len(running) == 2:
                        yield self._finish(store, *running.popleft())
                    size = chunk.pool.bytes[chunk.step]
                    half = self._staging.halves[number % 2][: len(chunk.pages) * size]
                    table = half.view(chunk.pool.element).view(len(chunk.pages), -1)
                    rows = torch.tensor(chunk.pages, device=self._device)
                    if store:
                        self._gather(chunk, rows, table)
                    begin = half.data_ptr()
                    values: List[Value] = [(name, ((begin + at * size, size),)) for at, name in enumerate(chunk.names)]
                    running.append((chunk, rows, table, self._begin(store, values)))
                while running:
                    yield self._finish(store, *running.popleft())
            done = True
        finally:
            if not done:
                self.close()  # the server may still copy from and to it

    def _begin(self, store: bool, values: List[Value]) -> Future[List[Result]]:
        future: Future[List[Result]] = Future()

        def hear(results: List[Result], error: Optional[KvCacheError]) -> None:
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(results)

        self._mover.submit(store, values, hear)
        return future

    def _gather(self, chunk: _Chunk, rows: Any, table: Any) -> None:
        here = self._device.type == "cpu"
        packed = table if here else torch.empty_like(table, device=self._device)
        chunk.pool.gather(chunk.step, rows, packed)
        if not here:
            table.copy_(packed, non_blocking=True)
            self._stream.synchronize()

    def _finish(
        self, store: bool, chunk: _Chunk, rows: Any, table: Any, future: Future[List[Result]]
    ) -> Tuple[_Chunk, List[Result]]:
        try:
            results = future.result(self._seconds * max(1, len(chunk.names)))
        except TimeoutError:
            raise KvCacheError("pages were not moved in time") from None
        if not store and all(each == Result.COPIED for each in results):
            chunk.pool.scatter(chunk.step, rows, table.to(self._device, non_blocking=True))
            if self._device.type != "cpu":
                self._stream.synchronize()
        return chunk, results

    def close(self) -> None:
        if self._staging is not None:
            self._staging.close()
            self._staging = None


class KvCacheLinker(Pages, UnifiedCacheLinker):
    """Pages of SGLang's device pools in a KVCache server.

    Threads: SGLang's scheduler; it waits in look-ups, in ``finish_layer_wise_loading`` and in ``reset``. One thread loads,
    one stores, and one hears replies. A load that fails, as the server was killed or has evicted a page since the
    look-up, ends its requests: SGLang aborts them.

    :param extra_config: the settings of ``Pages``
    """

    pin_seconds = _PIN_SECONDS

    def __init__(
        self,
        server_args: Any,
        params: Any,
        *,
        components: Any,
        extra_config: Optional[Dict[str, Any]] = None,
        forward_stream: Any = None,
    ) -> None:
        super().__init__("kvcache.sglang_linker", dict(extra_config or {}))
        self.forward_stream = forward_stream
        self._group = sglang_compat.device_pools(params, components)
        self.pools = self._group.entry_map
        layers = int(self._group.num_layers)
        steps = min(layers, _MOST_STEPS)
        self._moved = {str(name): _Pool(entry, layers, steps) for name, entry in self.pools.items()}
        self._layers = [[layer for layer in range(layers) if layer * steps // layers == step] for step in range(steps)]
        facts = sglang_compat.linker_facts(params, self._model, self._group)
        self._namespace = self._client.namespace(**identity(_FORM, **facts, steps=steps), salt=self._salt)
        mover = open_mover(self._client, self._namespace)
        self._mover = mover
        self._client.watch()
        self._half = max(_HALF_BYTES, *(size for pool in self._moved.values() for size in pool.bytes.values()))
        self._device = next(iter(self.pools.values())).kv_buffer[0].device
        self.layer_done_counter = LayerWiseLoadCounter(layers)
        sglang_compat.follow_states(params, self.pools, self.layer_done_counter)
        self.lost = 0
        """Values that had gone between a look-up and a load."""
        self._queued: Dict[str, _Transfers] = {}
        self._loads: queue.Queue[Optional[Tuple[int, List[_Transfers], Any]]] = queue.Queue()
        self._offloads: queue.Queue[Optional[Tuple[_Transfers, List[Any]]]] = queue.Queue()
        self._offloaded: queue.Queue[bool] = queue.Queue()
        self._threads = [
            threading.Thread(target=each, name=f"kvcache-linker-{name}", daemon=True)
            for name, each in (("load", self._load_all), ("store", self._store_all))
        ]
        for each in self._threads:
            each.start()

    def _namespaces(self) -> List[Namespace]:
        return [self._namespace]

    def _of(self, name: str) -> Optional[Namespace]:
        return self._namespace if name in self._moved else None

    def _names(self, name: str, key: str) -> List[bytes]:
        return [self._step_name(name, key, step) for step in self._moved[name].steps]

    @staticmethod
    def _step_name(pool: str, key: str, step: int) -> bytes:
        return f"{key}/{pool}/{step}".encode()

    def lookup(self, rid: str, transfers: _Transfers) -> List[int]:
        """Returns every number of leading pages that all pools can restore."""

        def look() -> List[int]:
            wanted = self._group.resolve_transfers(transfers)
            keys = next((list(each.keys or ()) for each in transfers if str(each.name) == _KV), [])
            if not wanted or not keys:
                return []
            pages = self._present(_KV, keys) if _KV in self._moved else len(keys)
            return self._restorable(keys, pages, wanted)[1]

        return self._guarded([], look)

    def load(self, rid: str, transfers: _Transfers) -> bool:
        """Queues a load. The answer is that of all ranks, whether or not a server answers: then the load fails."""
        wanted = self._group.resolve_transfers(transfers, allow_partial=True, allow_missing_kv=True)
        if not wanted or rid in self._queued:
            return False
        self._queued[rid] = wanted
        return True

    def cancel_queued_load(self, rid: str) -> bool:
        """Takes a load back that has not begun."""
        return self._queued.pop(rid, None) is not None

    def start_layer_wise_loading(self) -> int:
        """Begins the queued loads; returns their number, or -1 where there are none."""
        if not self._queued:
            return -1
        queued, self._queued = self._queued, {}
        number: int = self.layer_done_counter.update_producer()
        ready = device_module.Event()
        ready.record()
        self._loads.put((number, list(queued.values()), ready))
        return number

    def finish_layer_wise_loading(self, counter_index: int) -> bool:
        """Waits until loads are done; returns whether all of them are."""
        landed: bool = self.layer_done_counter.finish(counter_index)
        return landed

    def offload(self, transfers: _Transfers, session_id: Optional[str] = None) -> bool:
        """Queues pages to be stored. The answer is that of all ranks, as in ``load``."""
        wanted = self._group.resolve_transfers(transfers, allow_partial=True)
        if wanted:
            self._offloads.put((wanted, self.record_offload_ready()))
        return bool(wanted)

    def num_completed_offloads(self) -> int:
        """Returns how many results ``pop_completed_offload`` has."""
        return self._offloaded.qsize()

    def pop_completed_offload(self) -> bool:
        """Returns whether the oldest pages that were to be stored are."""
        return self._offloaded.get_nowait()

    def _copier(self) -> _Copier:
        return _Copier(self._mover, self._half, self._device, self._client.timeout)

    def _chunks(self, transfers: Iterable[Any], absent_only: bool) -> List[_Chunk]:
        """Divides transfers into chunks, those of the first layers first."""
        wanted: Dict[str, Tuple[List[str], List[int]]] = {}
        for transfer in transfers:
            keys, pages = wanted.setdefault(str(transfer.name), ([], []))
            rows = self._moved[str(transfer.name)].pages(transfer.host_indices)
            if len(rows) != len(transfer.keys):
                raise ValueError(f"indices of {len(rows)} pages for {len(transfer.keys)} keys")
            keys += transfer.keys
            pages += rows
        chunks: List[_Chunk] = []
        for name, (keys, pages) in wanted.items():
            pool = self._moved[name]
            for step, size in pool.bytes.items():
                names = [self._step_name(name, key, step) for key in keys]
                places = list(range(len(names)))
                if absent_only:
                    places = [at for at in places if not self._namespace.contains_now(names[at])]
                most = max(1, self._half // size)
                for begin in range(0, len(places), most):
                    part = places[begin : begin + most]
                    chunks.append(_Chunk(step, pool, [names[at] for at in part], [pages[at] for at in part]))
        return sorted(chunks, key=lambda chunk: chunk.step)

    def _load_all(self) -> None:
        copier = self._copier()
        for number, queued, ready in self._tasks(self._loads):

            def load(number: int = number, queued: List[_Transfers] = queued, ready: Any = ready) -> bool:
                ready.synchronize()
                chunks = self._chunks([each for transfers in queued for each in transfers], False)
                left = collections.Counter(chunk.step for chunk in chunks)
                lost = 0
                with contextlib.closing(copier.move(False, chunks)) as moved:
                    for step, layers in enumerate(self._layers):
                        for _, results in itertools.islice(moved, left[step]):
                            lost += sum(each != Result.COPIED for each in results)
                        for layer in layers if not lost else ():
                            self.layer_done_counter.complete(number, layer)
                    next(moved, None)
                self.lost += lost
                return not lost

            if not self._guarded(False, load):
                self.layer_done_counter.fail(number, KvCacheError("pages were not loaded"))
        copier.close()

    def _store_all(self) -> None:
        copier = self._copier()
        for wanted, events in self._tasks(self._offloads):

            def store(wanted: _Transfers = wanted, events: List[Any] = events) -> bool:
                for event in events:
                    event.synchronize()
                moved = list(copier.move(True, self._chunks(wanted, True)))
                return all(each.stored for _, results in moved for each in results)

            self._offloaded.put(self._guarded(False, store))
        copier.close()

    @staticmethod
    def _tasks(tasks: queue.Queue[Any]) -> Iterator[Any]:
        """Takes tasks until there is None."""
        while True:
            task = tasks.get()
            try:
                if task is None:
                    return
                yield task
            finally:
                tasks.task_done()

    def _quiesce(self) -> None:
        self._queued.clear()
        self._loads.join()
        self._offloads.join()
        while self._offloaded.qsize():
            self._offloaded.get_nowait()
        self.layer_done_counter.reset()

    def reset(self) -> None:
        """Drops all pages of this engine's namespace, also for others that use it, as after new weights.

        Where the server does not answer nothing is found and stored until it has dropped them.
        """
        self._reset.begin()
        self._quiesce()
        if not self._client.connected or not self._reset.drop():
            logger.warning("KVCache: the server does not answer; it is asked again to drop what is stored")

    def close(self) -> None:
        """Ends the threads and the session."""
        self._quiesce()
        self._loads.put(None)
        self._offloads.put(None)
        for each in self._threads:
            each.join()
        self._mover.close()
        self._client.close()
