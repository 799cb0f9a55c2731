"""What connectors to vLLM share that name blocks by tokens: the scheduler's part, and what vLLM asks of any."""

from __future__ import annotations

import collections
import dataclasses
import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Callable, ClassVar, Dict, Generic, List, Optional, Protocol, Set, Tuple, TypeVar

import vllm.distributed.kv_transfer.kv_connector.v1.base as _base
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
)

from kvcache import vllm_compat
from kvcache.blocks import Blocks, Chain
from kvcache.client import Client
from kvcache.errors import KvCacheError
from kvcache.settings import NAMES, open_client, split
from kvcache.vllm_metrics import STORES, Connected, KvCachePromMetrics, KvCacheStats

logger = logging.getLogger(__name__)

_NEVER = 1 << 62
_MOST_CHAINS = 512

_SupportsHMA: Any = getattr(_base, "SupportsHMA", object)


@dataclasses.dataclass
class Transfer:
    """Blocks of one request to load or store: ``pages[i]`` is vLLM's block for block ``first + i`` of the tokens."""

    request: str
    tokens: List[int]
    first: int
    pages: List[int]
    hashes: List[bytes] = dataclasses.field(default_factory=list)
    """The low 64 bits of vLLM's own hashes of these blocks; empty where vLLM hashes others."""


@dataclasses.dataclass
class Transfers(KVConnectorMetadata):
    """The work of one step, from the scheduler to the workers."""

    step: int = 0
    """From 1."""
    mended: int = 0
    """The last step that was scheduled before vLLM heard of the last failed loads: later ones compute them again."""
    loads: List[Transfer] = dataclasses.field(default_factory=list)
    stores: List[Transfer] = dataclasses.field(default_factory=list)
    finished: List[str] = dataclasses.field(default_factory=list)


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
        self.on_disk = 0
        """Of the blocks that the server has."""
        self.done = 0
        """Tokens that are computed after the last step that was scheduled."""

    def tokens(self) -> Sequence[int]:
        tokens: Sequence[int] = self.request.all_token_ids
        return tokens


class Scheduler:
    """The part in the scheduler's process. Look-ups read the server's index in shared memory."""

    def __init__(
        self, client: Client, ranks: Callable[[], List[Blocks]], block_tokens: int, loads: bool, stores: bool
    ) -> None:
        self._client = client
        self._ranks = ranks
        self._block_tokens = block_tokens
        self._loads, self._stores = loads, stores
        self._requests: Dict[str, _Request] = {}
        self._step = self._mended = 0

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
            matches = [blocks.match(chain) for blocks, chain in zip(ranks, state.chains)]
            found = min(matches, key=lambda each: each.blocks)
        except (KvCacheError, ValueError) as failed:  # a token that no vocabulary has, for one
            logger.debug("no look-up: %s", failed)
            return 0
        state.stored, state.on_disk = found.blocks, found.disk
        return max(0, found.blocks * size - computed) if self._loads else 0

    def sources(self, request: Any, tokens: int) -> Dict[Any, int]:
        """Says where tokens that are loaded come from: memory of this host, its disks, or elsewhere."""
        state = self._requests.get(request.request_id)
        disk = min(tokens, state.on_disk * self._block_tokens) if state is not None else 0
        return vllm_compat.hit_sources(tokens - disk, disk, self._client.shares_memory)

    def drop(self) -> bool:
        """Forgets the blocks of all workers; returns whether all are forgotten.

        Requests that go on have keys and values from before, so what they compute is not stored.
        """
        for state in self._requests.values():
            state.stored = _NEVER
        try:
            self._client.connect()  # after the server was away, the background may still be about to
            ranks = self._ranks()
            for blocks in ranks:
                blocks.namespace.drop()
        except KvCacheError as failed:
            logger.warning("KVCache: blocks are not dropped: %s", failed)
            return False
        return bool(ranks)

    def failed(self, pages: Set[int]) -> None:
        """Hears that loads into pages have failed, so that vLLM computes them and what was computed upon them again.

        A worker does not store what rests upon its own failed loads. Another one may have stored it.
        """
        self._mended = self._step
        try:
            ranks = self._ranks()
            for state in self._requests.values() if len(ranks) > 1 else ():
                first = next((at for at, page in enumerate(state.pages) if page in pages), None)
                if first is not None:
                    for blocks in ranks:
                        blocks.drop(blocks.chain(state.tokens()), first)
        except (KvCacheError, ValueError) as failed:
            logger.warning("KVCache: blocks that other workers computed upon failed loads are not dropped: %s", failed)

    def allocated(self, request: Any, external: int) -> None:
        state = self._requests.get(request.request_id)
        if state is not None:
            state.external = external

    def step(self, output: Any) -> Transfers:
        """Says what to load before a step, and what to store after it."""
        self._step += 1
        work = Transfers(self._step, self._mended, finished=sorted(output.finished_req_ids))
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
        if computed < state.done and not anew and state.stored != _NEVER:
            state.stored = min(state.stored, computed // size)  # computed again after a load has failed
        drafts = len((getattr(output, "scheduled_spec_decode_tokens", None) or {}).get(name, ()))
        done = min(computed + output.num_scheduled_tokens.get(name, 0) - drafts, len(tokens))
        state.done = done
        full = min(done // size, len(state.pages))
        if self._stores and full > state.stored:
            first = state.stored
            hashes = vllm_compat.hashes_of(state.request, size)[first:full]
            work.stores.append(Transfer(name, list(tokens[: full * size]), first, state.pages[first:full], hashes))
            state.stored = full


_C = TypeVar("_C", bound="_Extensible")


class _Extensible(Protocol):
    def extend(self, tokens: Sequence[int]) -> object: ...


class ChainCache(Generic[_C]):
    """The chains of the requests that a worker has seen, so that each is made, and told to a server, once.

    :param close: lets go of a chain that makes room for others, or whose request has finished
    """

    def __init__(self, close: Callable[[_C], None] = lambda _: None) -> None:
        self._close = close
        self._chains: collections.OrderedDict[str, Tuple[_C, int]] = collections.OrderedDict()

    def get(self, transfer: Transfer, make: Callable[[Sequence[int]], _C]) -> _C:
        """Returns the chain of a request, with all its tokens by now.

        :param make: makes one of tokens, where there is none
        """
        tokens = transfer.tokens
        chain, known = self._chains.pop(transfer.request, (None, 0))
        if chain is None:
            while len(self._chains) >= _MOST_CHAINS:
                self._close(self._chains.popitem(last=False)[1][0])
            chain = make(tokens)
        elif known < len(tokens):
            chain.extend(tokens[known:])
        self._chains[transfer.request] = chain, max(known, len(tokens))
        return chain

    def forget(self, requests: Sequence[str]) -> None:
        """Lets go of the chains of requests that have finished."""
        for name in requests:
            found = self._chains.pop(name, None)
            if found is not None:
                self._close(found[0])

    def clear(self) -> None:
        """Forgets all, which went with their session."""
        self._chains.clear()


class TokenConnector(KVConnectorBase_V1, _SupportsHMA):
    """Blocks of vLLM in a KVCache server, named by their tokens, so processes need no common ``PYTHONHASHSEED``.

    Requests with a LoRA adapter, images, a cache salt or embedded prompts are computed as without it. A ``kv_consumer``
    only loads, and a ``kv_producer`` only stores. Settings: address, tenant, secret_file, tls, timeout.
    """

    settings: ClassVar[Tuple[str, ...]] = ()
    """Names of a connector's own settings."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any = None) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        vllm_compat.check()
        transfer = vllm_config.kv_transfer_config
        mine, others = split(dict(transfer.kv_connector_extra_config or {}))
        unknown = sorted(set(others) - set(self.settings))
        if unknown:
            raise ValueError(f"unknown settings {unknown}; allowed: {', '.join((*NAMES, *self.settings))}")
        groups = [] if kv_cache_config is None else kv_cache_config.kv_cache_groups
        if len(groups) != 1:
            raise ValueError(f"{len(groups)} KV cache groups; allowed: 1; hybrid models go through the tiering offload")
        self._role_name = str(getattr(transfer, "kv_role", None) or "kv_both")
        self._client = open_client(mine, type(self).__module__, *vllm_compat.PACKAGES)
        self._connected = Connected()
        self._failed_at = 0
        """The last step of which a load has failed here."""
        self._scheduler: Optional[Scheduler] = None
        self._worker: Any = None
        if role == KVConnectorRole.SCHEDULER:
            if getattr(transfer, "kv_load_failure_policy", "recompute") == "fail":
                logger.warning(
                    "KVCache: a request ends with an error when a block of its prompt is gone before it is loaded; set"
                    ' "kv_load_failure_policy": "recompute" in --kv-transfer-config, and vLLM computes it instead'
                )
            self._scheduler = self._open_scheduler(vllm_config, kv_cache_config)
        else:
            self._worker = self._open_worker(vllm_config, kv_cache_config, others)

    @abstractmethod
    def _open_scheduler(self, vllm_config: Any, kv_cache_config: Any) -> Scheduler:
        """Returns the scheduler's part."""

    @abstractmethod
    def _open_worker(self, vllm_config: Any, kv_cache_config: Any, settings: Dict[str, Any]) -> Any:
        """Returns the worker's part, with ``counts``, ``has_failed``, ``failed`` and ``close``."""

    def _scheduler_of(self, ranks: Callable[[], List[Blocks]], kv_cache_config: Any) -> Scheduler:
        tokens = int(kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size)
        role = self._role_name
        self._client.watch()  # so that a server that is gone is noticed at once
        return Scheduler(self._client, ranks, tokens, role != "kv_producer", role != "kv_consumer")

    def _scheduling(self) -> Scheduler:
        assert self._scheduler is not None, "called in the scheduler's process"
        return self._scheduler

    def _working(self) -> Any:
        assert self._worker is not None, "called in a worker's process"
        return self._worker

    def _stores_of(self, work: Transfers) -> List[Transfer]:
        """Returns what a step is to store: nothing, as long as it may rest upon blocks that have not come."""
        worker = self._working()
        if worker.has_failed:
            self._failed_at = work.step
        if self._failed_at <= work.mended:
            return work.stores
        worker.counts.add(STORES, "skipped", sum(len(each.pages) for each in work.stores))
        return []

    @property
    def requires_kv_delivery(self) -> bool:
        """A block that is not stored is computed again: nothing has to wait for it."""
        return False

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Tuple[int, bool]:
        """Returns how many tokens can be loaded, before the step and not beside it."""
        return self._scheduling().matched(request, num_computed_tokens), False

    def get_external_cache_hit_sources(self, request: Any, num_external_tokens: int) -> Dict[Any, int]:
        """Says where loaded tokens come from, for vLLM's metrics."""
        return self._scheduling().sources(request, num_external_tokens)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Remembers what to load."""
        self._scheduling().allocated(request, num_external_tokens)

    def update_connector_output(self, connector_output: Any) -> None:
        """Hears of loads that have failed."""
        failed = getattr(connector_output, "invalid_block_ids", None)
        if failed:
            self._scheduling().failed(failed)

    def build_connector_meta(self, scheduler_output: Any) -> Transfers:
        """Returns the work of a step."""
        return self._scheduling().step(scheduler_output)

    def request_finished(self, request: Any, block_ids: Any) -> Tuple[bool, Optional[Dict[str, Any]]]:
        """Blocks may be freed at once: copies come before what is written to them next."""
        return False, None

    def request_finished_all_groups(self, request: Any, block_ids: Any) -> Tuple[bool, Optional[Dict[str, Any]]]:
        """As ``request_finished``."""
        return False, None

    def reset_cache(self) -> bool:
        """Forgets what is stored, also for others who use it, as after new weights; False where it cannot be forgotten."""
        return self._scheduler is not None and self._scheduler.drop()

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing to do: a step begins when all its blocks are there."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Nothing to do: all layers are stored together."""

    def get_block_ids_with_load_errors(self) -> Set[int]:
        """Returns the blocks that were gone when they were to be loaded: vLLM computes them."""
        failed: Set[int] = self._working().failed()
        return failed

    def get_kv_connector_stats(self) -> Optional[KvCacheStats]:
        """Returns what was counted since the last call."""
        if self._worker is None:
            stats = KvCacheStats(data=dict(self._connected.take(self._client.connected)))
        else:
            stats = KvCacheStats.of(self._worker.counts.take())
        return None if stats.is_empty() else stats

    @classmethod
    def build_kv_connector_stats(cls, data: Optional[Dict[str, Any]] = None) -> KvCacheStats:
        """Returns what another process has counted."""
        return KvCacheStats(data=data or {})

    @classmethod
    def build_prom_metrics(
        cls, vllm_config: Any, metric_types: Any, labelnames: Any, per_engine_labelvalues: Any
    ) -> KvCachePromMetrics:
        """Registers the counters with vLLM's metrics."""
        return KvCachePromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    def shutdown(self) -> None:
        """Ends the session."""
        if self._worker is not None:
            self._worker.close()
        self._client.close()
