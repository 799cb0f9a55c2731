"""A connector for vLLM: the server copies blocks between its memory and vLLM's KV cache on the GPU of the same host.

Configured by ``--kv-transfer-config``::

    {"kv_connector": "KvCacheConnector", "kv_connector_module_path": "kvcache.vllm_gpu", "kv_role": "kv_both",
     "kv_load_failure_policy": "recompute", "kv_connector_extra_config": {"address": "127.0.0.1:7420"}}

The server is started with ``--gpu``. No byte crosses vLLM's host memory or a socket. Blocks are named by their tokens, so
processes need no common ``PYTHONHASHSEED``. Copies are in the order of vLLM's stream: what is loaded is there before the
forward pass, and what is stored was copied before its pages are written again.

Threads: those of vLLM's scheduler and of each worker, with one more that makes copied blocks findable.
"""

from __future__ import annotations

import collections
import json
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from kvcache import vllm_compat
from kvcache.blocks import Blocks, BlockShape
from kvcache.client import Client
from kvcache.errors import ConnectionLost, KvCacheError
from kvcache.gpu import GpuChain, GpuError, GpuSession, LayeredLoad, Pool, Store
from kvcache.settings import identity
from kvcache.vllm_connector import ChainCache, Scheduler, TokenConnector, Transfer, Transfers
from kvcache.vllm_metrics import LOADS, STORES, Counts

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_SEAL_SECONDS = 0.001
_PLACES = "kvcache vLLM workers"
"""The model of the values by which workers tell the scheduler of their blocks."""


class Geometry(NamedTuple):
    """How the layers of vLLM's KV cache lie in memory."""

    sides: int
    pages: int
    pages_per_block: int
    piece_bytes: int
    page_stride: int
    side_stride: int
    axes: str
    """Sizes and order of a piece's axes, and the type, which must match between engines."""

    @classmethod
    def of(cls, tensor: Any, blocks: int) -> Geometry:
        """Reads it from the tensor of a layer.

        :param blocks: of vLLM's, of which each may be several pages of the attention kernel's
        """
        shape, strides, element = tuple(tensor.shape), tuple(tensor.stride()), tensor.element_size()
        if len(shape) > 1 and shape[0] % blocks == 0 and shape[0] >= blocks:
            axis = 0
        elif len(shape) > 2 and shape[0] == 2 and shape[1] % blocks == 0 and shape[1] >= blocks:
            axis = 1
        else:
            raise ValueError(
                f"a KV cache of shape {shape}; allowed: [blocks, …] or [2, blocks, …] with {blocks} blocks"
            )
        rest = sorted(zip(strides[axis + 1 :], shape[axis + 1 :]), reverse=True)
        size = 1
        for stride, count in reversed(rest):
            if count > 1 and stride != size:
                raise ValueError(f"a KV cache of shape {shape} with strides {strides}; allowed: blocks without gaps")
            size *= count
        return cls(
            sides=2 if axis else 1,
            pages=shape[axis],
            pages_per_block=shape[axis] // blocks,
            piece_bytes=size * element,
            page_stride=strides[axis] * element,
            side_stride=strides[0] * element if axis else 0,
            axes=f"{shape[axis + 1 :]}{[stride for stride, _ in rest]}{tensor.dtype}",
        )

    @property
    def layer_bytes(self) -> int:
        """From the first byte of a layer to behind its last."""
        return (self.pages - 1) * self.page_stride + self.side_stride + self.piece_bytes


class _Worker:
    """The part in the process of one GPU."""

    def __init__(
        self, client: Client, key: bytes, facts: Dict[str, Any], block_tokens: int, blocks: int, settings: Any
    ) -> None:
        self._client = client
        self._key = key
        self._facts = facts
        self._block_tokens = block_tokens
        self._count = blocks
        self._library = str(settings.get("cuda_library", "libcuda.so.1"))
        self._wait = float(settings.get("wait", 2.0))
        self._by_layers = _by_layers(settings)
        self._loading: List[Tuple[Transfer, LayeredLoad]] = []
        """Of this step, layer by layer."""
        self._layer_of: Dict[str, int] = {}
        self._layers: List[Tuple[int, int]] = []
        self._device = 0
        self._geometry: Optional[Geometry] = None
        self._pool: Optional[Pool] = None
        """Of a session that was not seen to end; of the worker's thread."""
        self._broken: Optional[KvCacheError] = None
        """Why the session ended, as the other thread found out."""
        self._retry_at = 0.0
        self._told = ""
        """Why there is no session, as it was logged."""
        self._chains: ChainCache[GpuChain] = ChainCache(GpuChain.close)
        self.counts = Counts()
        self._failed: Set[int] = set()
        self._lock = threading.RLock()
        self._stores: collections.deque[Tuple[Store, int]] = collections.deque()
        """With the number of blocks that each was to store."""
        self._wanted = threading.Event()
        self._closed = False
        self._sealer = threading.Thread(target=self._seal, name="kvcache-seal", daemon=True)
        self._sealer.start()

    def register(self, caches: Dict[str, Any], stream: Any) -> None:
        """Takes the tensors of all layers."""
        layers: Dict[int, Any] = {}
        for tensor in caches.values():
            if not hasattr(tensor, "data_ptr"):
                raise ValueError("a layer's KV cache is no tensor; models with states go through the tiering offload")
            layers.setdefault(tensor.data_ptr(), tensor)
        geometries = {Geometry.of(tensor, self._count) for tensor in layers.values()}
        if len(geometries) != 1:
            raise ValueError(f"layers differ: {sorted(geometries)}; allowed: layers of one shape")
        self._geometry = geometries.pop()
        self._layers = [(address, self._geometry.layer_bytes) for address in layers]
        order = {address: layer for layer, address in enumerate(layers)}
        self._layer_of = {name: order[tensor.data_ptr()] for name, tensor in caches.items()}
        self._device = getattr(next(iter(layers.values())).device, "index", 0) or 0
        self._stream = stream
        self._connect()

    def _connect(self) -> None:
        """Connects, at most every two seconds, and tells the scheduler how blocks look."""
        geometry = self._geometry
        if self._pool is not None or geometry is None or time.monotonic() < self._retry_at:
            return
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        piece = geometry.piece_bytes * geometry.pages_per_block
        shape = [len(self._layers), piece // self._block_tokens, self._block_tokens, geometry.sides]
        try:
            if piece % self._block_tokens:
                raise KvCacheError(
                    f"{piece} bytes of a block are no whole number for each of {self._block_tokens} tokens"
                )
            lies = {"shape": "x".join(map(str, shape)), "axes": geometry.axes, "pages": geometry.pages_per_block}
            fields = identity("vllm-gpu/2", **self._facts, **lies)
            blocks = _blocks(self._client, fields, shape)
            session = GpuSession.connect(self._client, self._device, library=self._library)
            try:
                self._pool = session.pool(
                    blocks,
                    self._layers,
                    sides=geometry.sides,
                    pages=geometry.pages,
                    piece_bytes=geometry.piece_bytes,
                    pages_per_block=geometry.pages_per_block,
                    page_stride=geometry.page_stride,
                    side_stride=geometry.side_stride,
                )
            except BaseException:
                session.close()
                raise
            told = json.dumps({"shape": shape, "fields": fields}).encode()
            self._client.namespace(_PLACES).put(self._key, told)
            self._told = ""
        except KvCacheError as refused:
            if str(refused) != self._told:
                self._told = str(refused)
                logger.warning("KVCache: %s; going on without it until it can be used", refused)

    def _lose(self, why: KvCacheError) -> None:
        pool, self._pool = self._pool, None
        for transfer, _ in self._loading:
            self._loaded(transfer, 0, "failed")
        self._loading.clear()
        self._broken = None
        self._chains.clear()
        with self._lock:
            self.counts.add(STORES, "failed", sum(blocks for _, blocks in self._stores))
            self._stores.clear()
        if pool is not None:
            logger.warning("KVCache: %s; going on without it until it answers", why)
            pool.session.close()

    def _refused(self, why: KvCacheError) -> None:
        """A transfer failed, and with it perhaps the session."""
        if isinstance(why, (ConnectionLost, GpuError)):
            self._lose(why)
        else:
            logger.debug("a transfer was refused: %s", why)

    def _chain(self, pool: Pool, transfer: Transfer) -> GpuChain:
        """The server's chain of a request, which it is told of once."""
        return self._chains.get(transfer, pool.chain)

    def _pages(self, blocks: Sequence[int]) -> List[int]:
        assert self._geometry is not None
        each = self._geometry.pages_per_block
        return [block * each + page for block in blocks for page in range(each)]

    def load(self, work: Transfers) -> None:
        """Queues the loads of a step before its work."""
        self._chains.forget(work.finished)
        if self._broken is not None:
            self._lose(self._broken)
        self._connect()
        for transfer in work.loads:
            loaded, rest = 0, "failed"
            try:
                if self._pool is not None:
                    pages = self._pages(transfer.pages)
                    chain = self._chain(self._pool, transfer)
                    if self._by_layers:
                        load = chain.load_layers(pages, transfer.first, stream=self._stream(), wait=self._wait)
                        if load is not None:
                            self._loading.append((transfer, load))
                            continue
                    else:
                        loaded = chain.load(pages, transfer.first, stream=self._stream(), wait=self._wait)
                    rest = "absent"
            except KvCacheError as failed:
                self._refused(failed)
            self._loaded(transfer, loaded, rest)

    def _loaded(self, transfer: Transfer, blocks: int, rest: str) -> None:
        """Notes how many leading blocks of a load have come; vLLM computes the others."""
        self.counts.add(LOADS, "copied", blocks)
        self.counts.add(LOADS, rest, len(transfer.pages) - blocks)
        self._failed.update(transfer.pages[blocks:])

    def wait_for_layer(self, name: str) -> None:
        """Has the stream wait for a layer of this step's loads; of all layers when it is not known."""
        layer = self._layer_of.get(name, len(self._layers) - 1)
        for _, load in self._loading[:]:
            try:
                load.order(layer, self._stream())
            except KvCacheError as failed:
                self._refused(failed)

    def finish_loads(self) -> None:
        """Learns which blocks of this step have come."""
        while self._loading:
            transfer, load = self._loading.pop()
            loaded, rest = 0, "failed"
            try:
                loaded, rest = load.finish(self._stream()), "absent"
            except KvCacheError as failed:
                self._refused(failed)
            self._loaded(transfer, loaded, rest)

    def store(self, transfers: Sequence[Transfer]) -> None:
        """Queues the stores of a step behind its work; the stream goes on when they are done."""
        for transfer in transfers:
            try:
                if self._pool is None:
                    raise KvCacheError("there is no session with the server")
                stream, pages = self._stream(), self._pages(transfer.pages)
                store = self._chain(self._pool, transfer).store(pages, transfer.first, stream=stream)
                store.order(stream)
            except KvCacheError as failed:
                self.counts.add(STORES, "failed", len(transfer.pages))
                self._refused(failed)
                continue
            with self._lock:
                self._stores.append((store, len(transfer.pages)))
            self._wanted.set()

    def _seal(self) -> None:
        """Makes blocks findable once they are copied."""
        while not self._closed:
            self._wanted.wait()
            with self._lock:
                store, blocks = self._stores.popleft() if self._stores else (None, 0)
                if store is None:
                    self._wanted.clear()
                    continue
            try:
                while not self._closed and not store.is_copied():
                    time.sleep(_SEAL_SECONDS)
                new = store.seal()
                self.counts.add(STORES, "copied", new)
                self.counts.add(STORES, "present", store.blocks - new)
                self.counts.add(STORES, "declined", blocks - store.blocks)
            except KvCacheError as failed:
                self.counts.add(STORES, "failed", blocks)
                self._broken = failed

    @property
    def has_failed(self) -> bool:
        """Whether a load of this step has failed."""
        return bool(self._failed)

    def failed(self) -> Set[int]:
        self.finish_loads()
        failed, self._failed = self._failed, set()
        return failed

    def close(self) -> None:
        end = time.monotonic() + self._client.timeout
        while self._stores and time.monotonic() < end:
            time.sleep(_SEAL_SECONDS)
        self._closed = True
        self._wanted.set()
        self._sealer.join(self._client.timeout)
        if self._pool is not None:
            self._pool.session.close()
            self._pool = None


def _by_layers(settings: Dict[str, Any]) -> bool:
    chosen = settings.get("layers", False)
    if not isinstance(chosen, bool):
        raise ValueError(f"layers = {chosen!r}; allowed: true and false")
    return chosen


def _blocks(client: Client, fields: Dict[str, str], shape: Sequence[int]) -> Blocks:
    layers, dim, tokens, sides = shape
    return client.blocks(
        shape=BlockShape(layers=layers, heads=1, dim=dim, tokens=tokens, dtype="int8", planes=sides), **fields
    )


def _place(engine: str, rank: int) -> bytes:
    """The key of the value in which a worker tells the scheduler of its blocks."""
    return f"{engine}/{rank}".encode()


class _ToldBlocks:
    """The blocks of each worker, which alone knows how they lie; it tells the scheduler by a value in the server."""

    def __init__(self, client: Client, places: Sequence[bytes]) -> None:
        self._client = client
        self._values = client.namespace(_PLACES)
        self._places = places
        self._known: List[Blocks] = []

    def all(self) -> List[Blocks]:
        """Returns them once all workers have told of theirs; nothing before."""
        if not self._known and self._client.connected:
            found = [self._values.get(key) for key in self._places]
            if all(each is not None for each in found):
                told = [json.loads(bytes(each or b"")) for each in found]
                self._known = [_blocks(self._client, each["fields"], each["shape"]) for each in told]
        return self._known


class KvCacheConnector(TokenConnector):
    """Blocks of vLLM in a KVCache server, copied on the device.

    Settings beside those of ``TokenConnector``: cuda_library; wait, the seconds that a load may wait for a disk; layers,
    whether a step begins to compute while later layers are still on their way.
    """

    settings = ("cuda_library", "layers", "wait")

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any = None) -> None:
        address = (vllm_config.kv_transfer_config.kv_connector_extra_config or {}).get("address", "")
        if not isinstance(address, str) or "," in address:
            raise ValueError(
                f"address = {address!r:.100} names a cluster; allowed: the server on this host alone, as it copies between its"
                " memory and the device"
            )
        super().__init__(vllm_config, role, kv_cache_config)

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: Dict[str, Any]) -> bool:
        """Layers are waited for between pieces; a graph of a whole step would not."""
        return _by_layers(extra_config or {})

    def _open_scheduler(self, vllm_config: Any, kv_cache_config: Any) -> Scheduler:
        engine = str(vllm_config.kv_transfer_config.engine_id)
        workers = int(getattr(vllm_config.parallel_config, "world_size", 1))
        places = [_place(engine, rank) for rank in range(workers)]
        return self._scheduler_of(_ToldBlocks(self._client, places).all, kv_cache_config)

    def _open_worker(self, vllm_config: Any, kv_cache_config: Any, settings: Dict[str, Any]) -> _Worker:
        rank = int(getattr(vllm_config.parallel_config, "rank", 0))
        engine = str(vllm_config.kv_transfer_config.engine_id)
        tokens = int(kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size)
        facts = {**vllm_compat.facts_of(vllm_config), "rank": rank}
        return _Worker(self._client, _place(engine, rank), facts, tokens, int(kv_cache_config.num_blocks), settings)

    def register_kv_caches(self, kv_caches: Dict[str, Any]) -> None:
        """Shows the server where the KV cache lies."""
        self._working().register(kv_caches, _current_stream)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Queues the loads of this step."""
        self._working().load(self._get_connector_metadata())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Has the stream wait for a layer, where loads come layer by layer; else it waits for all from the start."""
        self._working().wait_for_layer(layer_name)

    def wait_for_save(self) -> None:
        """Queues the stores of this step; the stream waits, this thread does not."""
        self._working().finish_loads()
        self._working().store(self._stores_of(self._get_connector_metadata()))


def _current_stream() -> int:
    import torch

    return int(torch.cuda.current_stream().cuda_stream)
