"""A HiCache storage backend for SGLang: pages move between SGLang's host pools and a KVCache server.

``kvcache.sglang_linker`` moves them between the server and SGLang's device pools, without host pools in between.

Configured by::

    --hicache-storage-backend dynamic --hicache-storage-backend-extra-config
      '{"backend_name": "kvcache", "module_path": "kvcache.sglang", "class_name": "KvCacheHiCache",
        "interface_v1": 1, "allocator": "shm", "address": "127.0.0.1:7420"}'

With ``"allocator": "shm"`` the host pool is memory that the server maps. Without it, pages are sent.
``kvcache.sglang_compat`` names the versions that were tried.
"""

from __future__ import annotations

import collections
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple, TypeVar

from sglang.srt.mem_cache.hicache_storage import HiCacheStorage

from kvcache import sglang_compat
from kvcache.client import Namespace, Result
from kvcache.cluster import open_mover
from kvcache.errors import KvCacheError
from kvcache.memory import buffer_at
from kvcache.mover import Mover, Value
from kvcache.reset import Reset
from kvcache.settings import identity, open_client, split

logger = logging.getLogger(__name__)

_KV = "kv"
_PAGES, _TENSORS = "sglang/2", "sglang-tensor/2"
"""Forms of a page: gathered from its pieces, or as a flat tensor. They are apart, as bytes may be in another order."""

_MOST_TIMES = 1024
"""Of copies that wait for SGLang to ask for them."""

_T = TypeVar("_T")


class _Pool(NamedTuple):
    pool: Any
    mover: Mover
    pieces: int
    """Of a page."""
    page_bytes: int


class Pages(ABC):
    """Pages of SGLang in a KVCache server, by the hashes that SGLang has for them.

    Nothing raises into SGLang's threads: what cannot be done is a miss, counted in ``refused`` and ``failed``. Nothing
    waits without a connection.

    :param settings: address, tenant, secret_file, tls, timeout; salt, whose engines share with equal ones alone; model,
        in place of SGLang's name and path of it
    """

    pin_seconds = 0.0
    """How long what a look-up has found is kept in memory."""

    def __init__(self, connector: str, settings: Dict[str, Any]) -> None:
        sglang_compat.check()
        self._model: Optional[str] = settings.get("model")
        self._salt = str(settings.get("salt") or "")
        self._client = open_client(split(settings)[0], connector, "sglang")
        self._reset = Reset(self._client, self._namespaces)
        self._answers = True
        self.refused = 0
        """Calls that could never succeed, such as those with a key of 5,000 bytes."""
        self.failed = 0
        """Calls that the server did not answer, or that were made without a connection."""

    @abstractmethod
    def _namespaces(self) -> List[Namespace]:
        """All that this engine stores into."""

    @abstractmethod
    def _of(self, name: str) -> Optional[Namespace]:
        """The namespace of a pool's pages; None where there is no such pool."""

    def _names(self, name: str, key: str) -> List[bytes]:
        """The names of the values that a page of a pool is stored as."""
        return [key.encode()]

    def _guarded(self, nothing: _T, work: Callable[[], _T]) -> _T:
        """Runs what SGLang has asked for, and answers ``nothing`` where that cannot be done."""
        try:
            if not self._client.connected:
                raise KvCacheError("there is no connection to the server")
            if self._reset.pending:
                self._reset.ask()
                return nothing
            answer = work()
        except KvCacheError as failed:
            self.failed += 1
            if self._answers:
                self._answers = False
                logger.warning("KVCache: %s; SGLang computes until the server answers", failed)
            return nothing
        except Exception as refused:
            self.refused += 1
            if self.refused == 1:
                logger.warning("KVCache refused pages, which SGLang computes instead: %s", refused)
            return nothing
        self._answers = True
        return answer

    def _present(self, name: str, keys: Sequence[str]) -> int:
        """How many leading pages a pool has."""
        namespace = self._of(name)
        if namespace is None or not keys:
            return 0

        def match() -> int:
            names = [each for key in keys for each in self._names(name, key)]
            return namespace.match(names, self.pin_seconds) * len(keys) // len(names)

        return self._guarded(0, match)

    def _each_present(self, name: str, keys: Sequence[str]) -> List[bool]:
        """Which pages a pool has."""
        namespace = self._of(name)
        nothing = [False] * len(keys)
        if namespace is None or not keys:
            return nothing

        def look() -> List[bool]:
            names = [each for key in keys for each in self._names(name, key)]
            there = _contains_all(self._client, namespace, names)
            if self.pin_seconds:
                namespace.pin([each for each, here in zip(names, there) if here], self.pin_seconds)
            count = len(names) // len(keys)
            return [all(there[at : at + count]) for at in range(0, len(there), count)]

        return self._guarded(nothing, look)

    def _restorable(self, keys: Sequence[str], pages: int, transfers: Any) -> Tuple[Dict[Any, int], List[int]]:
        """Applies the rules of pools beside keys and values.

        :param pages: that keys and values have
        :return: how far each pool reaches, and the prefixes of which all pools have what their rules ask for
        """
        verdicts: Dict[Any, int] = {}
        restorable = list(range(1, pages + 1))
        for transfer in transfers or []:
            name, policy = _name(transfer.name), _name(transfer.hit_policy)
            if name == _KV:
                continue
            if policy == "block_groups":
                whole = self._whole_groups(name, transfer, pages)
                if whole is not None:
                    verdicts[transfer.name] = whole
                continue
            if policy == "trailing_pages":
                ends = _trailing(self._each_present(name, keys[:pages]), max(1, len(transfer.keys or ())))
            else:
                ends = list(range(1, self._present(name, keys[:pages]) + 1))
            if ends:
                verdicts[transfer.name] = ends[-1]
            kept = set(ends)
            restorable = [end for end in restorable if end in kept]
        return verdicts, restorable

    def _whole_groups(self, name: str, transfer: Any, pages: int) -> Optional[int]:
        """The pages that a pool's leading complete groups of keys cover; None where its groups are not told."""
        group, block = getattr(transfer, "group_pages", 0), getattr(transfer, "block_pages", 0)
        if not transfer.keys or group < 1 or block < 1:
            return None
        return min(pages, self._present(name, list(transfer.keys)) // group * block)


class KvCacheHiCache(Pages, HiCacheStorage):
    """Pages of SGLang in a KVCache server; each page of a pool is one value, gathered from its pieces.

    SGLang calls it in its backup and prefetch threads, which may wait for ``timeout``. Registering a pool whose pages
    cannot be told from another engine's raises ValueError, so that SGLang says so at its start. The settings are those
    of ``Pages``, in the extra configuration.
    """

    def __init__(self, storage_config: Any, kwargs: Optional[Dict[str, Any]] = None) -> None:
        extra = dict(getattr(storage_config, "extra_config", None) or {})
        extra.update(kwargs or {})
        super().__init__("kvcache.sglang", extra)
        self._config = storage_config
        self._zero_copy = bool(extra.get("interface_v1", 0))
        self._pools: Dict[str, _Pool] = {}
        self._logical = False
        self._plain: Optional[Namespace] = None
        timed = bool(getattr(storage_config, "enable_storage_metrics", False))
        self._times: Optional[Deque[Tuple[bool, int, float]]] = collections.deque(maxlen=_MOST_TIMES) if timed else None

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Takes SGLang's host pool of keys and values."""
        super().register_mem_pool_host(mem_pool_host)
        self._register(_KV, mem_pool_host)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        """Takes a further pool, such as the states of recurrent layers."""
        self._register(_name(host_pool_name), host_pool)

    def _register(self, name: str, pool: Any) -> None:
        known = self._pools.get(name)
        if known is not None and known.pool is pool:
            return
        if name == _KV:
            self._logical = sglang_compat.is_logical(pool)
            if self._logical:
                return
            self._plain = self._namespace(_TENSORS, name, pool)
        try:
            (page,) = sglang_compat.pieces_of(pool, sglang_compat.one_page(pool))
        except Exception as unknown:
            raise ValueError(
                f'kvcache.sglang cannot store pages of the pool "{name}" of the layout'
                f" {getattr(pool, 'layout', None)!r}: {unknown}; choose another --hicache-mem-layout"
            ) from unknown
        size = sum(each for _, each in page)
        mover = open_mover(self._client, self._namespace(_PAGES, name, pool, bytes=size, pieces=len(page)))
        if not all([mover.add(address, each) for address, each in page]):
            logger.warning(
                'the pool "%s" is not in memory that the server can map; set "allocator": "shm" in'
                " --hicache-storage-backend-extra-config. Until then its pages are sent",
                name,
            )
        self._pools[name] = _Pool(pool, mover, len(page), size)

    def _namespace(self, form: str, name: str, pool: Any, **more: Any) -> Namespace:
        facts = sglang_compat.facts_of(self._config, self._model, name, pool)
        return self._client.namespace(**identity(form, **facts, **more), salt=self._salt)

    def _values(self, name: str, keys: Sequence[str], host_indices: Any) -> List[Value]:
        known = self._pools[name]
        pages = sglang_compat.pieces_of(known.pool, host_indices)
        if len(pages) != len(keys):
            raise ValueError(f"indices of {len(pages)} pages for {len(keys)} keys")
        for page in pages:
            if len(page) != known.pieces or sum(size for _, size in page) != known.page_bytes:
                raise ValueError(f"a page of other pieces than when the pool {name} was registered")
        return [(key.encode(), page) for key, page in zip(keys, pages)]

    def _move(self, store: bool, name: str, keys: Sequence[str], host_indices: Any) -> List[bool]:
        nothing = [False] * len(keys)
        if name not in self._pools or not keys:
            return nothing

        def move() -> List[bool]:
            values = self._values(name, keys, host_indices)
            began = time.monotonic()
            results = self._pools[name].mover.run(store, values, self._client.timeout)
            good = [result.stored if store else result == Result.COPIED for result in results]
            if self._times is not None:
                gigabytes = results.count(Result.COPIED) * self._pools[name].page_bytes / (1 << 30)
                self._times.append((store, len(keys), gigabytes / max(1e-9, time.monotonic() - began)))
            return good

        return self._guarded(nothing, move)

    def _of(self, name: str) -> Optional[Namespace]:
        if name == _KV and not (self._zero_copy and name in self._pools):
            return self._tensors()
        return self._pools[name].mover.namespace if name in self._pools else None

    def _namespaces(self) -> List[Namespace]:
        return [self._tensors(), *(each.mover.namespace for each in self._pools.values())]

    def _pages(self, keys: Sequence[str]) -> int:
        """How many leading pages of keys and values there are."""
        return len(keys) if self._logical else self._present(_KV, keys)

    def batch_exists(self, keys: List[str], extra_info: Any = None) -> int:
        """Returns how many leading pages are there."""
        return self._pages(keys)

    def exists(self, key: str) -> bool:
        """Returns whether a page is there."""
        return self._pages([key]) == 1

    def batch_get_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> List[bool]:
        """Loads pages into the host pool."""
        return [True] * len(keys) if self._logical else self._move(False, _KV, keys, host_indices)

    def batch_set_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> List[bool]:
        """Stores pages of the host pool."""
        return [True] * len(keys) if self._logical else self._move(True, _KV, keys, host_indices)

    def batch_exists_v2(self, keys: List[str], pool_transfers: Any = None, extra_info: Any = None) -> Any:
        """Returns the prefixes of which all pools have what their rules ask for: the longest, and each that there is."""
        pages = self._pages(keys)
        verdicts, restorable = self._restorable(keys, pages, pool_transfers)
        if pages:
            verdicts = {_KV: pages, **verdicts}
        return sglang_compat.found(restorable[-1] if restorable else 0, verdicts, restorable)

    def batch_get_v2(self, transfers: Any, extra_info: Any = None) -> Dict[str, List[bool]]:
        """Loads pages of several pools."""
        return self._move_pools(False, transfers)

    def batch_set_v2(self, transfers: Any, extra_info: Any = None) -> Dict[str, List[bool]]:
        """Stores pages of several pools."""
        return self._move_pools(True, transfers)

    def _move_pools(self, store: bool, transfers: Any) -> Dict[Any, List[bool]]:
        moved: Dict[Any, List[bool]] = {}
        sources = {_name(each.name): each for each in transfers}
        for transfer in transfers:
            name, source = _name(transfer.name), transfer
            if getattr(transfer, "indices_from_pool", None) is not None:
                source = sources.get(_name(transfer.indices_from_pool), transfer)
            keys = list(transfer.keys or source.keys or [])
            indices = source.host_indices if transfer.host_indices is None else transfer.host_indices
            if name == _KV and self._logical:
                moved[transfer.name] = [True] * len(keys)
            else:
                moved[transfer.name] = self._move(store, name, keys, indices)
        return moved

    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> bool:
        """Stores a tensor."""
        tensor = value if value is not None else target_location
        if tensor is None:
            return False

        def put() -> bool:
            whole = tensor.contiguous()
            return self._tensors().put(key.encode(), _bytes_of(whole)).stored

        return self._guarded(False, put)

    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any:
        """Loads into a contiguous tensor; returns it, or None."""
        if target_location is None:
            return None
        if self._guarded(False, lambda: self._tensors().get_into(key.encode(), _bytes_of(target_location))):
            return target_location
        return None

    def _tensors(self) -> Namespace:
        """Pages of the interface without a host pool."""
        if self._plain is None:
            self._plain = self._namespace(_TENSORS, _KV, None)
        return self._plain

    def batch_set(
        self, keys: List[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool:
        """Stores tensors; returns whether all are stored."""
        return all([self.set(key, value) for key, value in zip(keys, values or target_locations or [])])

    def batch_get(self, keys: List[str], target_locations: Any = None, target_sizes: Any = None) -> List[Any]:
        """Loads into tensors; returns them, with None for each that is absent."""
        return [self.get(key, target) for key, target in zip(keys, target_locations or [])]

    def clear(self) -> bool:
        """Drops all pages of this engine's namespaces, also for other engines that share them.

        Where the server does not answer this raises, which SGLang's HTTP handler reports as a failed clear. This engine
        finds and stores nothing from then on until the server has dropped them.
        """
        self._reset.begin()
        if self._client.connected and self._reset.drop():
            return True
        raise RuntimeError(
            "KVCache: the server does not answer; it is asked again to drop what was stored, and SGLang finds and stores"
            " nothing there until then"
        )

    def get_stats(self) -> Any:
        """Returns pages and speed of each copy since the last call, for SGLang's metrics; None where they are off."""
        if self._times is None:
            return None
        times = [self._times.popleft() for _ in range(len(self._times))]
        return sglang_compat.storage_metrics(times)

    def close(self) -> None:
        """Ends the session."""
        for each in self._pools.values():
            each.mover.close()
        self._client.close()


def _name(of: Any) -> str:
    return str(getattr(of, "value", of))


def _trailing(present: Sequence[bool], count: int) -> List[int]:
    """Returns the prefixes whose last pages are all there."""
    ends, run = [], 0
    for end, here in enumerate(present, 1):
        run = run + 1 if here else 0
        if run >= min(count, end):
            ends.append(end)
    return ends


def _contains_all(client: Any, namespace: Namespace, keys: Sequence[bytes]) -> List[bool]:
    """Returns which keys are there; asks for all at once where the server's index is not on this host."""
    told: List[Optional[bool]] = [namespace.contains_now(key) for key in keys]
    unknown = [at for at, answer in enumerate(told) if answer is None]
    left = [len(unknown)]

    def hear(at: int, answer: Optional[bool]) -> None:
        told[at] = bool(answer)
        left[0] -= 1

    for at in unknown:
        namespace.submit_contains(keys[at], lambda answer, at=at: hear(at, answer))
    end = time.monotonic() + client.timeout
    while left[0]:
        if time.monotonic() > end:
            raise KvCacheError("a look-up was not answered in time")
        client.poll()
        time.sleep(0.0002)
    return [bool(each) for each in told]


def _bytes_of(tensor: Any) -> memoryview:
    """Shows the bytes of a contiguous tensor on the CPU."""
    if hasattr(tensor, "is_contiguous") and not tensor.is_contiguous():
        raise ValueError("a tensor that is not contiguous; allowed: one that is")
    return buffer_at(int(tensor.data_ptr()), int(tensor.numel() * tensor.element_size()))
