"""A connector for vLLM: the server copies blocks between its memory and vLLM's KV cache on the GPU of the same host.

Configured by ``--kv-transfer-config``::

    {"kv_connector": "KvCacheConnector", "kv_connector_module_path": "kvcache.vllm_gpu", "kv_role": "kv_both",
     "kv_connector_extra_config": {"address": "127.0.0.1:7420"}}

The server is started with ``--gpu``. No byte crosses vLLM's host memory or a socket. Blocks are named by their tokens, so
processes need no common ``PYTHONHASHSEED``. Copies are in the order of vLLM's stream: what is loaded is there before the
forward pass, and what is stored was copied before its pages are written again.

Threads: those of vLLM's scheduler and of each worker, with one more that makes copied blocks findable.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
)

from kvcache.blocks import Blocks, BlockShape, Chain
from kvcache.client import Client
from kvcache.errors import ConnectionLost, KvCacheError
from kvcache.gpu import GpuChain, GpuError, GpuSession, LayeredLoad, Pool, Store
from kvcache.settings import NAMES, open_client, split

logger = logging.getLogger(__name__)

_SETTINGS = ("cuda_library", "layers", "wait")
_MOST_CHAINS = 512
_RETRY_SECONDS = 2.0
_SEAL_SECONDS = 0.001
_PLACES = "kvcache vLLM workers"
"""The model of the values by which workers tell the scheduler of their blocks."""


@dataclasses.dataclass
class Transfer:
    """Blocks of one request to load or store: ``pages[i]`` is vLLM's block for block ``first + i`` of the tokens."""

    request: str
    tokens: List[int]
    first: int
    pages: List[int]


@dataclasses.dataclass
class Transfers(KVConnectorMetadata):
    """The work of one step, from the scheduler to the workers."""

    loads: List[Transfer] = dataclasses.field(default_factory=list)
    stores: List[Transfer] = dataclasses.field(default_factory=list)
    finished: List[str] = dataclasses.field(default_factory=list)


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


def _unusable(request: Any) -> bool:
    """Whether tokens alone do not name a request's KV."""
    if getattr(request, "prompt_embeds", None) is not None:
        return True
    return any(getattr(request, name, None) for name in ("lora_request", "mm_features", "cache_salt"))


class _Request:
    """A request that the scheduler runs."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.chains: List[Chain] = []
        self.external = 0
        """Tokens to load in the next step."""
        self.stored = 0
        """Leading blocks that the server has, or that were sent to it."""
        self.pages: List[int] = []

    def tokens(self) -> Sequence[int]:
        tokens: Sequence[int] = self.request.all_token_ids
        return tokens


class _Scheduler:
    """The part in the scheduler's process. Look-ups read the server's index in shared memory."""

    def __init__(self, client: Client, engine: str, model: str, block_tokens: int, ranks: int) -> None:
        self._client = client
        self._model = model
        self._block_tokens = block_tokens
        self._places = client.namespace(_PLACES)
        self._keys = [f"{engine}/{rank}".encode() for rank in range(ranks)]
        self._blocks: List[Blocks] = []
        self._requests: Dict[str, _Request] = {}

    def _ranks(self) -> List[Blocks]:
        """The blocks of each worker, once all have told of theirs."""
        if not self._blocks and self._client.connected:
            found = [self._places.get(key) for key in self._keys]
            if all(each is not None for each in found):
                told = [json.loads(bytes(each or b"")) for each in found]
                self._blocks = [_blocks(self._client, self._model, each["shape"], each["layout"]) for each in told]
        return self._blocks

    def matched(self, request: Any, computed: int) -> int:
        """Returns how many tokens beyond those computed can be loaded."""
        size = self._block_tokens
        if _unusable(request) or computed % size or not self._client.connected:
            return 0
        state = self._requests.get(request.request_id)
        if state is None:
            state = self._requests[request.request_id] = _Request(request)
        if getattr(request, "skip_reading_prefix_cache", False):
            return 0  # as for log probabilities of the prompt, which only computing it gives
        try:
            ranks = self._ranks()
            tokens = state.tokens()
            limit = (len(tokens) - 1) // size  # one token has to be computed
            if not ranks or limit < 1:
                return 0
            if len(state.chains) != len(ranks) or len(state.chains[0]) < limit:
                state.chains = [each.chain(tokens[: limit * size]) for each in ranks]
            present = min(blocks.match(chain).blocks for blocks, chain in zip(ranks, state.chains))
        except (KvCacheError, ValueError) as failed:  # a token that no vocabulary has, for one
            logger.debug("no look-up: %s", failed)
            return 0
        state.stored = present
        return max(0, present * size - computed)

    def allocated(self, request: Any, external: int) -> None:
        state = self._requests.get(request.request_id)
        if state is not None:
            state.external = external

    def step(self, output: Any) -> Transfers:
        """Says what to load before a step, and what to store after it."""
        work = Transfers(finished=sorted(output.finished_req_ids))
        for each in work.finished:
            self._requests.pop(each, None)
        for new in output.scheduled_new_reqs:
            self._add(work, output, new.req_id, new.num_computed_tokens, new.block_ids, True)
        cached = output.scheduled_cached_reqs
        resumed = getattr(cached, "resumed_req_ids", None)
        if resumed is None:
            flags = getattr(cached, "resumed_from_preemption", [])
            resumed = {name for name, flag in zip(cached.req_ids, flags) if flag}
        for at, name in enumerate(cached.req_ids):
            anew = name in resumed
            self._add(work, output, name, cached.num_computed_tokens[at], cached.new_block_ids[at], anew)
        return work

    def _add(self, work: Transfers, output: Any, name: str, computed: int, pages: Any, anew: bool) -> None:
        state = self._requests.get(name)
        if state is None:
            return
        if pages:
            state.pages = ([] if anew else state.pages) + list(pages[0])
        size = self._block_tokens
        tokens = state.tokens()
        if state.external:
            first, end = (computed - state.external) // size, computed // size
            work.loads.append(Transfer(name, list(tokens[: end * size]), first, state.pages[first:end]))
            state.external = 0
        drafts = len((getattr(output, "scheduled_spec_decode_tokens", None) or {}).get(name, ()))
        done = min(computed + output.num_scheduled_tokens.get(name, 0) - drafts, len(tokens))
        full = min(done // size, len(state.pages))
        if full > state.stored:
            work.stores.append(
                Transfer(name, list(tokens[: full * size]), state.stored, state.pages[state.stored : full])
            )
            state.stored = full


class _Worker:
    """The part in the process of one GPU."""

    def __init__(self, client: Client, key: bytes, model: str, block_tokens: int, blocks: int, settings: Any) -> None:
        self._client = client
        self._key = key
        self._model = model
        self._block_tokens = block_tokens
        self._count = blocks
        self._library = str(settings.get("cuda_library", "libcuda.so.1"))
        self._wait = float(settings.get("wait", 2.0))
        self._by_layers = _by_layers(settings)
        self._loading: List[Tuple[Transfer, LayeredLoad]] = []
        """Of this step, layer by layer."""
        self._layer_of: Dict[str, int] = {}
        self._rank = key.rpartition(b"/")[2].decode()
        self._layers: List[Tuple[int, int]] = []
        self._device = 0
        self._geometry: Optional[Geometry] = None
        self._pool: Optional[Pool] = None
        """Of a session that was not seen to end; of the worker's thread."""
        self._broken: Optional[KvCacheError] = None
        """Why the session ended, as the other thread found out."""
        self._retry_at = 0.0
        self._chains: collections.OrderedDict[str, Tuple[GpuChain, int]] = collections.OrderedDict()
        self._failed: Set[int] = set()
        self._lock = threading.RLock()
        self._stores: collections.deque[Store] = collections.deque()
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
        layout = f"vllm gpu {geometry.axes} {geometry.pages_per_block} rank {self._rank}"
        try:
            if piece % self._block_tokens:
                raise KvCacheError(
                    f"{piece} bytes of a block are no whole number for each of {self._block_tokens} tokens"
                )
            blocks = _blocks(self._client, self._model, shape, layout)
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
            told = json.dumps({"shape": shape, "layout": layout}).encode()
            self._client.namespace(_PLACES).put(self._key, told)
        except KvCacheError as refused:
            logger.warning("KVCache: %s; going on without it until it can be used", refused)

    def _lose(self, why: KvCacheError) -> None:
        pool, self._pool = self._pool, None
        self._failed.update(block for transfer, _ in self._loading for block in transfer.pages)
        self._loading.clear()
        self._broken = None
        self._chains.clear()
        with self._lock:
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
        chain, known = self._chains.pop(transfer.request, (None, 0))
        if chain is None:
            while len(self._chains) >= _MOST_CHAINS:
                self._chains.popitem(last=False)[1][0].close()
            chain = pool.chain(transfer.tokens)
        elif known < len(transfer.tokens):
            chain.extend(transfer.tokens[known:])
        self._chains[transfer.request] = chain, max(known, len(transfer.tokens))
        return chain

    def _pages(self, blocks: Sequence[int]) -> List[int]:
        assert self._geometry is not None
        each = self._geometry.pages_per_block
        return [block * each + page for block in blocks for page in range(each)]

    def load(self, work: Transfers) -> None:
        """Queues the loads of a step before its work."""
        for name in work.finished:
            found = self._chains.pop(name, None)
            if found is not None:
                found[0].close()
        if self._broken is not None:
            self._lose(self._broken)
        self._connect()
        for transfer in work.loads:
            loaded = 0
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
            except KvCacheError as failed:
                self._refused(failed)
            self._failed.update(transfer.pages[loaded:])

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
            loaded = 0
            try:
                loaded = load.finish(self._stream())
            except KvCacheError as failed:
                self._refused(failed)
            self._failed.update(transfer.pages[loaded:])

    def store(self, work: Transfers) -> None:
        """Queues the stores of a step behind its work; the stream goes on when they are done."""
        for transfer in work.stores:
            if self._pool is None:
                return
            try:
                stream, pages = self._stream(), self._pages(transfer.pages)
                store = self._chain(self._pool, transfer).store(pages, transfer.first, stream=stream)
                store.order(stream)
            except KvCacheError as failed:
                self._refused(failed)
                continue
            with self._lock:
                self._stores.append(store)
            self._wanted.set()

    def _seal(self) -> None:
        """Makes blocks findable once they are copied."""
        while not self._closed:
            self._wanted.wait()
            with self._lock:
                store = self._stores.popleft() if self._stores else None
                if store is None:
                    self._wanted.clear()
                    continue
            try:
                while not self._closed and not store.is_copied():
                    time.sleep(_SEAL_SECONDS)
                store.seal()
            except KvCacheError as failed:
                self._broken = failed

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


def _blocks(client: Client, model: str, shape: Sequence[int], layout: str) -> Blocks:
    layers, dim, tokens, sides = shape
    return client.blocks(
        model, BlockShape(layers=layers, heads=1, dim=dim, tokens=tokens, dtype="int8", planes=sides), layout=layout
    )


class KvCacheConnector(KVConnectorBase_V1):
    """Blocks of vLLM in a KVCache server, copied on the device.

    Requests with a LoRA adapter, images, a cache salt or embedded prompts are computed as without it. Settings: address,
    tenant, secret_file, tls, timeout; cuda_library; wait, the seconds that a load may wait for a disk; layers, whether a
    step begins to compute while later layers are still on their way.
    """

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: Dict[str, Any]) -> bool:
        """Layers are waited for between pieces; a graph of a whole step would not."""
        return _by_layers(extra_config or {})

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any = None) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        settings, others = split(dict(vllm_config.kv_transfer_config.kv_connector_extra_config or {}))
        unknown = sorted(set(others) - set(_SETTINGS))
        if unknown:
            raise ValueError(f"unknown settings {unknown}; allowed: {', '.join((*NAMES, *_SETTINGS))}")
        groups = [] if kv_cache_config is None else kv_cache_config.kv_cache_groups
        if len(groups) != 1:
            raise ValueError(f"{len(groups)} KV cache groups; allowed: 1; hybrid models go through the tiering offload")
        model = str(vllm_config.model_config.model)
        tokens = int(groups[0].kv_cache_spec.block_size)
        engine = str(vllm_config.kv_transfer_config.engine_id)
        parallel = vllm_config.parallel_config
        ranks = int(getattr(parallel, "world_size", 1))
        revision = getattr(vllm_config.model_config, "revision", None)
        if revision:
            model = f"{model}@{revision}"
        self._client = open_client(settings)
        self._scheduler: Optional[_Scheduler] = None
        self._worker: Optional[_Worker] = None
        if role == KVConnectorRole.SCHEDULER:
            self._scheduler = _Scheduler(self._client, engine, model, tokens, ranks)
        else:
            key = f"{engine}/{int(getattr(parallel, 'rank', 0))}".encode()
            self._worker = _Worker(self._client, key, model, tokens, int(kv_cache_config.num_blocks), others)

    def _scheduling(self) -> _Scheduler:
        assert self._scheduler is not None, "called in the scheduler's process"
        return self._scheduler

    def _working(self) -> _Worker:
        assert self._worker is not None, "called in a worker's process"
        return self._worker

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Tuple[int, bool]:
        """Returns how many tokens can be loaded, before the step and not beside it."""
        return self._scheduling().matched(request, num_computed_tokens), False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Remembers what to load."""
        self._scheduling().allocated(request, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> Transfers:
        """Returns the work of a step."""
        return self._scheduling().step(scheduler_output)

    def request_finished(self, request: Any, block_ids: Any) -> Tuple[bool, Optional[Dict[str, Any]]]:
        """Blocks may be freed at once: copies come before what is written to them next."""
        return False, None

    def register_kv_caches(self, kv_caches: Dict[str, Any]) -> None:
        """Shows the server where the KV cache lies."""
        self._working().register(kv_caches, _current_stream)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Queues the loads of this step."""
        self._working().load(self._get_connector_metadata())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Has the stream wait for a layer, where loads come layer by layer; else it waits for all from the start."""
        self._working().wait_for_layer(layer_name)

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Nothing to do: all layers are stored together."""

    def wait_for_save(self) -> None:
        """Queues the stores of this step; the stream waits, this thread does not."""
        self._working().finish_loads()
        self._working().store(self._get_connector_metadata())

    def get_block_ids_with_load_errors(self) -> Set[int]:
        """Returns the blocks that were gone when they were to be loaded: vLLM computes them."""
        return self._working().failed()

    def shutdown(self) -> None:
        """Ends the session."""
        if self._worker is not None:
            self._worker.close()
        self._client.close()


def _current_stream() -> int:
    import torch

    return int(torch.cuda.current_stream().cuda_stream)
