"""A connector for vLLM on the CPU: blocks are copied between vLLM's KV cache and a KVCache server's memory.

Configured by ``--kv-transfer-config``::

    {"kv_connector": "KvCacheCpuConnector", "kv_role": "kv_both", "kv_load_failure_policy": "recompute",
     "kv_connector_extra_config": {"address": "127.0.0.1:7420"}}

Where the server shares its memory, a block is loaded by one copy from there, and stored by a copy to there that another
thread of the server takes on. Elsewhere blocks are sent. A step waits for its loads and for the copies of what it
stores, not for the server.

Threads: those of vLLM's scheduler and worker, one that hears replies, and one that sends where no memory is shared.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Dict, List, Optional, Set, Tuple

from kvcache import vllm_compat
from kvcache.blocks import Blocks, BlockShape, Chain
from kvcache.client import Client
from kvcache.errors import KvCacheError
from kvcache.memory import buffer_at
from kvcache.settings import identity
from kvcache.vllm_connector import ChainCache, Scheduler, TokenConnector, Transfer, Transfers
from kvcache.vllm_metrics import LOADS, STORES, Counts
from kvcache.wire import Result

logger = logging.getLogger(__name__)

_MOST_QUEUED_BYTES = 256 << 20
_ROOM_SECONDS = 0.05
"""How long a step waits for the server to take what was stored before."""



def _blocks(client: Client, vllm_config: Any, kv_cache_config: Any, rank: int) -> Blocks:
    """The blocks of a worker: all layers, as they lie in its KV cache."""
    group = kv_cache_config.kv_cache_groups[0]
    spec = group.kv_cache_spec
    page, tokens = int(spec.page_size_bytes), int(spec.block_size)
    if page % tokens:
        raise ValueError(f"{page} bytes of a page are no whole number for each of {tokens} tokens")
    facts = {
        **vllm_compat.facts_of(vllm_config),
        "rank": rank,
        "layers": len(group.layer_names),
        "page": page,
        "tokens": tokens,
        "heads": f"{spec.num_kv_heads}x{spec.head_size}",
        "order": getattr(kv_cache_config, "kv_cache_layout", None) or "",
        # Kernels of other instruction sets order what is in a page otherwise.
        "kernel": vllm_compat.cpu_kernel(vllm_config, spec),
    }
    shape = BlockShape(layers=len(group.layer_names), heads=1, dim=page // tokens, tokens=tokens, dtype="int8", planes=1)
    return client.blocks(shape=shape, **identity("vllm-cpu/1", **facts))


class _Worker:
    """The part in the worker's process."""

    def __init__(self, client: Client, blocks: Blocks, wait: float) -> None:
        self._client = client
        self._blocks = blocks
        self._page = blocks.shape.block_bytes // blocks.shape.layers
        self._wait = wait
        self._layers: List[Tuple[int, int]] = []
        """Of each layer the address of its first page, and the bytes from one page to the next."""
        self._chains: ChainCache[Chain] = ChainCache()
        self._failed: Set[int] = set()
        self._lock = threading.Lock()
        self._running = 0
        self._queued = 0
        self._sender: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self.counts = Counts()
        client.watch()

    def register(self, caches: Dict[str, Any]) -> None:
        """Takes the tensors of all layers."""
        for name, tensor in caches.items():
            if not hasattr(tensor, "data_ptr"):
                raise ValueError(f"the KV cache of {name} is not a tensor; models with states are not supported")
            if tensor.device.type != "cpu":
                raise ValueError(f"the KV cache of {name} is on {tensor.device}; allowed: cpu; kvcache.vllm_gpu is for GPUs")
            if not tensor[0].is_contiguous() or tensor[0].nbytes != self._page:
                raise ValueError(
                    f"a block of {name} has shape {tuple(tensor.shape[1:])} and strides {tensor.stride()[1:]}; allowed:"
                    f" {self._page} bytes without gaps"
                )
            self._layers.append((tensor.data_ptr(), tensor.stride(0) * tensor.element_size()))
        if len(self._layers) != self._blocks.shape.layers:
            raise ValueError(f"{len(self._layers)} layers; allowed: {self._blocks.shape.layers}, as vLLM's groups have")

    def _pieces(self, page: int) -> List[memoryview]:
        return [buffer_at(begin + page * step, self._page) for begin, step in self._layers]

    def load(self, work: Transfers) -> None:
        """Copies the blocks of a step into the KV cache."""
        self._chains.forget(work.finished)
        for transfer in work.loads:
            done, rest = 0, "absent"
            try:
                chain, end = self._chains.get(transfer, self._blocks.chain), transfer.first + len(transfer.pages)
                with self._blocks._leased(chain, transfer.first, end, self._wait) as found:
                    for page, block in zip(transfer.pages, found.pieces):
                        for layer, piece in enumerate(self._pieces(page)):
                            piece[:] = block[layer * self._page : (layer + 1) * self._page]
                    done = found.held()
            except (KvCacheError, ValueError) as failed:
                logger.debug("blocks are not loaded: %s", failed)
                done, rest = 0, "failed"
            self.counts.add(LOADS, "copied", done)
            self.counts.add(LOADS, rest, len(transfer.pages) - done)
            self._failed.update(transfer.pages[done:])

    def store(self, transfers: Sequence[Transfer]) -> None:
        """Copies the blocks of a step out of the KV cache, which may be written again after this."""
        for transfer in transfers:
            begun, rest = 0, "skipped"
            try:
                if not self._client.connected:
                    raise KvCacheError("there is no connection to the server")
                chain = self._chains.get(transfer, self._blocks.chain)
                chain.set_hashes(transfer.hashes, transfer.first)
                for number, page in enumerate(transfer.pages, transfer.first):
                    if not self._begin(chain, number, self._pieces(page)):
                        break  # a block without the one before it is not kept
                    begun += 1
            except (KvCacheError, ValueError) as failed:
                logger.debug("blocks are not stored: %s", failed)
                rest = "failed"
            self.counts.add(STORES, rest, len(transfer.pages) - begun)

    def _begin(self, chain: Chain, number: int, pieces: List[memoryview]) -> bool:
        with self._lock:
            self._running += 1
        if self._blocks.submit_put(chain, number, pieces, self._stored, _ROOM_SECONDS):
            return True
        if self._client.shares_memory or self._queued > _MOST_QUEUED_BYTES:
            self._ended(0)
            return False
        if self._sender is None:
            self._sender = concurrent.futures.ThreadPoolExecutor(1, "kvcache-sender")
        copy = b"".join(pieces)
        with self._lock:
            self._queued += len(copy)
        self._sender.submit(self._send, chain.copy(), number, copy)
        return True

    def _send(self, chain: Chain, number: int, block: bytes) -> None:
        result = None
        try:
            result = self._blocks.put(chain, number, block)
        except KvCacheError as failed:
            logger.debug("a block is not stored: %s", failed)
        self._stored(result, len(block))

    def _stored(self, result: Optional[Result], queued: int = 0) -> None:
        self.counts.add(STORES, "failed" if result is None else result.name.lower())
        self._ended(queued)

    def _ended(self, queued: int) -> None:
        with self._lock:
            self._running -= 1
            self._queued -= queued

    @property
    def has_failed(self) -> bool:
        """Whether a load of this step has failed."""
        return bool(self._failed)

    def failed(self) -> Set[int]:
        failed, self._failed = self._failed, set()
        return failed

    def close(self) -> None:
        """Waits for what is being stored, no longer than its time."""
        end = time.monotonic() + self._client.timeout
        while self._running and time.monotonic() < end:
            time.sleep(0.001)
        if self._sender is not None:
            self._sender.shutdown(wait=False)


class KvCacheCpuConnector(TokenConnector):
    """Blocks of vLLM on the CPU in a KVCache server.

    Settings beside those of ``TokenConnector``: wait, the seconds that a load may wait for a disk.
    """

    settings = ("wait",)

    def _open_scheduler(self, vllm_config: Any, kv_cache_config: Any) -> Scheduler:
        workers = range(int(vllm_config.parallel_config.world_size))
        ranks = [_blocks(self._client, vllm_config, kv_cache_config, rank) for rank in workers]
        return self._scheduler_of(lambda: ranks, kv_cache_config)

    def _open_worker(self, vllm_config: Any, kv_cache_config: Any, settings: Dict[str, Any]) -> _Worker:
        rank = int(vllm_config.parallel_config.rank)
        blocks = _blocks(self._client, vllm_config, kv_cache_config, rank)
        return _Worker(self._client, blocks, float(settings.get("wait", 2.0)))

    def register_kv_caches(self, kv_caches: Dict[str, Any]) -> None:
        """Takes the KV cache of each layer."""
        self._working().register(kv_caches)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Loads the blocks of this step."""
        self._working().load(self._get_connector_metadata())

    def wait_for_save(self) -> None:
        """Stores the blocks of this step, and does not wait for the server."""
        self._working().store(self._stores_of(self._get_connector_metadata()))
