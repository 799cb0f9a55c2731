"""A HiCache storage backend for SGLang: pages move between SGLang's host pool and a KVCache server.

Configured by::

    --hicache-storage-backend dynamic --hicache-storage-backend-extra-config
      '{"backend_name": "kvcache", "module_path": "kvcache.sglang", "class_name": "KvCacheHiCache",
        "interface_v1": 1, "allocator": "shm", "address": "127.0.0.1:7420"}'

With ``"allocator": "shm"`` the host pool is memory that the server maps. Without it, pages are sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Dict, List, Optional, Tuple

import sglang.srt.mem_cache.hicache_storage as _storage
from sglang.srt.mem_cache.hicache_storage import HiCacheStorage

from kvcache.client import Namespace, Result
from kvcache.errors import KvCacheError
from kvcache.memory import buffer_at
from kvcache.mover import Mover, Value
from kvcache.settings import open_client, split

logger = logging.getLogger(__name__)

_KV = "kv"


class KvCacheHiCache(HiCacheStorage):
    """Pages of SGLang in a KVCache server; each page is one value, gathered from its pieces.

    SGLang calls it in its backup and prefetch threads, which may wait. A server that does not answer costs hits, and
    never raises into these threads.

    Settings, in the extra configuration: ``address``, ``tenant``, ``secret_file``, ``tls``, ``timeout``.
    """

    def __init__(self, storage_config: Any, kwargs: Optional[Dict[str, Any]] = None) -> None:
        extra = dict(getattr(storage_config, "extra_config", None) or {})
        extra.update(kwargs or {})
        self._config = storage_config
        self._client = open_client(split(extra)[0])
        self._pools: Dict[str, Tuple[Any, Mover]] = {}
        self._plain: Optional[Namespace] = None

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Takes SGLang's host pool of keys and values."""
        self.mem_pool_host = mem_pool_host
        self._register(_KV, mem_pool_host)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        """Takes a further pool, such as the states of recurrent layers."""
        self._register(str(host_pool_name), host_pool)

    def _register(self, name: str, pool: Any) -> None:
        mover = Mover(self._client, self._namespace(name, pool))
        buffer = getattr(pool, "kv_buffer", None)
        shared = False
        for tensor in buffer if isinstance(buffer, (list, tuple)) else [buffer]:
            if tensor is not None:
                shared = mover.add(int(tensor.data_ptr()), int(tensor.nbytes))
        if not shared:
            logger.warning(
                'the pool "%s" is not in memory that the server can map; set "allocator": "shm" in'
                " --hicache-storage-backend-extra-config. Until then its pages are sent",
                name,
            )
        self._pools[name] = (pool, mover)

    def _namespace(self, name: str, pool: Any) -> Namespace:
        config = self._config
        rank = "all" if getattr(config, "is_mla_model", False) else f"{config.tp_rank}of{config.tp_size}"
        stage = f"{getattr(config, 'pp_rank', 0)}of{getattr(config, 'pp_size', 1)}"
        part = f"{getattr(config, 'attn_cp_rank', 0)}of{getattr(config, 'attn_cp_size', 1)}"
        layout = "/".join(
            str(each)
            for each in ("sglang", name, getattr(pool, "layout", ""), getattr(pool, "page_size", ""), rank, stage, part)
        )
        return self._client.namespace(
            str(getattr(config, "model_name", None) or "unnamed"), dtype=str(getattr(pool, "dtype", "")), layout=layout
        )

    @staticmethod
    def _key(key: str) -> bytes:
        return key.encode()

    def _values(self, name: str, keys: Sequence[str], host_indices: Any) -> List[Value]:
        pool, _ = self._pools[name]
        addresses, sizes = pool.get_page_buffer_meta(host_indices)
        if len(keys) == 0 or len(addresses) % len(keys):
            raise ValueError(f"{len(addresses)} pieces for {len(keys)} pages")
        each = len(addresses) // len(keys)
        values: List[Value] = []
        for number, key in enumerate(keys):
            begin = number * each
            pieces = [(int(addresses[at]), int(sizes[at])) for at in range(begin, begin + each)]
            values.append((self._key(key), pieces))
        return values

    def _move(self, store: bool, name: str, keys: Sequence[str], host_indices: Any) -> List[bool]:
        if not keys:
            return []
        _, mover = self._pools[name]
        try:
            results = mover.run(store, self._values(name, keys, host_indices), self._client.timeout)
        except KvCacheError as failed:
            logger.debug("%d pages were not %s: %s", len(keys), "stored" if store else "loaded", failed)
            return [False] * len(keys)
        return [result.stored if store else result == Result.COPIED for result in results]

    def _present(self, name: str, keys: Sequence[str]) -> int:
        if not keys:
            return 0
        namespace = self._tensors() if name == _KV else self._pools[name][1].namespace
        try:
            return namespace.match([self._key(key) for key in keys])
        except KvCacheError as failed:
            logger.debug("no look-up: %s", failed)
            return 0

    def batch_exists(self, keys: List[str], extra_info: Any = None) -> int:
        """Returns how many leading pages are there."""
        return self._present(_KV, keys)

    def exists(self, key: str) -> bool:
        """Returns whether a page is there."""
        return self._present(_KV, [key]) == 1

    def batch_get_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> List[bool]:
        """Loads pages into the host pool."""
        return self._move(False, _KV, keys, host_indices)

    def batch_set_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> List[bool]:
        """Stores pages of the host pool."""
        return self._move(True, _KV, keys, host_indices)

    def batch_exists_v2(self, keys: List[str], pool_transfers: Any = None, extra_info: Any = None) -> Any:
        """Returns the longest prefix of which all pools have what their rule asks for."""
        pages = self._present(_KV, keys)
        found: Dict[str, int] = {}
        for transfer in pool_transfers or []:
            name = str(transfer.name)
            if name == _KV or name not in self._pools:
                continue
            if str(getattr(transfer.hit_policy, "value", transfer.hit_policy)) == "trailing_pages":
                pages = self._trailing(name, keys[:pages], len(transfer.keys or [""]))
                found[name] = min(pages, len(transfer.keys or [""]))
            else:
                pages = min(pages, self._present(name, keys[:pages]))
                found[name] = pages
        return _storage.PoolTransferResult(pages, found)

    def _trailing(self, name: str, keys: Sequence[str], count: int) -> int:
        """Returns the longest prefix whose last pages the pool has."""
        for end in range(len(keys), 0, -1):
            last = keys[max(0, end - count) : end]
            if self._present(name, last) == len(last):
                return end
        return 0

    def batch_get_v2(self, transfers: Any, extra_info: Any = None) -> Dict[str, List[bool]]:
        """Loads pages of several pools."""
        return self._move_pools(False, transfers)

    def batch_set_v2(self, transfers: Any, extra_info: Any = None) -> Dict[str, List[bool]]:
        """Stores pages of several pools."""
        return self._move_pools(True, transfers)

    def _move_pools(self, store: bool, transfers: Any) -> Dict[str, List[bool]]:
        moved: Dict[str, List[bool]] = {}
        for transfer in transfers:
            name = str(transfer.name)
            keys = list(transfer.keys or [])
            if name in self._pools:
                moved[name] = self._move(store, name, keys, transfer.host_indices)
            else:
                moved[name] = [False] * len(keys)
        return moved

    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> bool:
        """Stores a tensor."""
        tensor = value if value is not None else target_location
        if tensor is None:
            return False
        try:
            return self._tensors().put(self._key(key), _bytes_of(tensor.contiguous())).stored
        except KvCacheError as failed:
            logger.debug("a page was not stored: %s", failed)
            return False

    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any:
        """Loads into a tensor; returns it, or None."""
        if target_location is None:
            return None
        try:
            if self._tensors().get_into(self._key(key), _bytes_of(target_location)):
                return target_location
        except KvCacheError as failed:
            logger.debug("a page was not loaded: %s", failed)
        return None

    def _tensors(self) -> Namespace:
        """Pages of the interface without a host pool; the same ones as with it."""
        if _KV in self._pools:
            return self._pools[_KV][1].namespace
        if self._plain is None:
            self._plain = self._namespace(_KV, None)
        return self._plain

    def batch_set(
        self, keys: List[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool:
        """Stores tensors; returns whether all are stored."""
        return all([self.set(key, value) for key, value in zip(keys, values or target_locations or [])])

    def batch_get(self, keys: List[str], target_locations: Any = None, target_sizes: Any = None) -> List[Any]:
        """Loads into tensors; returns them, with None for each that is absent."""
        return [self.get(key, target) for key, target in zip(keys, target_locations or [])]

    def close(self) -> None:
        """Ends the session."""
        self._client.close()


def _bytes_of(tensor: Any) -> memoryview:
    """Shows the bytes of a contiguous tensor on the CPU."""
    return buffer_at(int(tensor.data_ptr()), int(tensor.numel() * tensor.element_size()))
