"""The interfaces of vLLM, SGLang and LMCache, as far as the connectors use them.

Where an engine is installed its own modules are used. Elsewhere these stand in for them, written from what the
engines document of their interfaces.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import importlib.util
import sys
import types
from typing import Any, Dict, List, Optional


def _module(name: str, **members: Any) -> None:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
            if end > 1:
                setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], sys.modules[path])
    for key, value in members.items():
        setattr(sys.modules[name], key, value)


def _installed(name: str) -> bool:
    """Whether a package is there, and not one of ours in its place."""
    loaded = sys.modules.get(name)
    return importlib.util.find_spec(name) is not None if loaded is None else loaded.__spec__ is not None


class LookupResult(enum.Enum):
    HIT = 1
    MISS = 2
    RETRY = 3


class Medium(enum.Enum):
    STORAGE = "storage"


class Locality(enum.Enum):
    LOCAL = "LOCAL"
    REMOTE = "REMOTE"


@dataclasses.dataclass
class OffloadingEvent:
    keys: List[bytes]
    medium: Any
    removed: bool
    locality: Any = None
    ownership: Any = None


@dataclasses.dataclass
class RequestOffloadingContext:
    pass


@dataclasses.dataclass
class TransferJob:
    job_id: int
    keys: List[bytes]
    chunk_ids: Any
    is_promotion: bool = False
    req_context: Any = None


@dataclasses.dataclass
class JobResult:
    job_id: int
    success: bool
    successful_keys: Optional[tuple] = None
    transfer_time: Optional[float] = None
    transfer_bytes: Optional[int] = None


class SecondaryTierManager(abc.ABC):
    def __init__(
        self, offloading_spec: Any, primary_kv_view: memoryview, tier_type: str, backpressure_detector: Any = None
    ) -> None:
        self._offloading_spec = offloading_spec
        self._primary_kv_view = primary_kv_view
        self.tier_type = tier_type

    @abc.abstractmethod
    def lookup(self, key: bytes, req_context: Any) -> Any: ...

    @abc.abstractmethod
    def submit_store(self, job_metadata: Any) -> None: ...

    @abc.abstractmethod
    def submit_load(self, job_metadata: Any) -> None: ...

    @abc.abstractmethod
    def get_finished_jobs(self) -> Any: ...

    @abc.abstractmethod
    def on_new_request(self, req_context: Any) -> Any: ...

    @abc.abstractmethod
    def drain_jobs(self) -> None: ...


def offloading_spec(**changes: Any) -> Any:
    """What vLLM's specification says of its model: sizes of the parallelism, ``dtype`` and ``order`` may be others."""
    sizes = {f"{name}_size": changes.pop(name, 1) for name in ("tp", "pp", "pcp", "dcp")}
    config = types.SimpleNamespace(
        model=types.SimpleNamespace(name="llama-3-8b", dtype=changes.pop("dtype", "bfloat16")),
        parallel=types.SimpleNamespace(rank=0, **sizes),
        groups=(types.SimpleNamespace(tokens_per_block=16, layer_names=("model.layers.0",), group_id=0),),
        kv_cache_layout=changes.pop("order", "NHD"),
    )
    return types.SimpleNamespace(config=config, blocks_per_chunk=changes.pop("blocks", 1), **changes)


class KVConnectorRole(enum.Enum):
    SCHEDULER = 0
    WORKER = 1


class KVConnectorMetadata(abc.ABC):
    pass


class KVConnectorBase(abc.ABC):
    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        self._connector_metadata: Optional[KVConnectorMetadata] = None

    def bind_connector_metadata(self, connector_metadata: KVConnectorMetadata) -> None:
        self._connector_metadata = connector_metadata

    def clear_connector_metadata(self) -> None:
        self._connector_metadata = None

    def _get_connector_metadata(self) -> KVConnectorMetadata:
        assert self._connector_metadata is not None
        return self._connector_metadata

    @abc.abstractmethod
    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None: ...

    @abc.abstractmethod
    def wait_for_layer_load(self, layer_name: str) -> None: ...

    @abc.abstractmethod
    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None: ...

    @abc.abstractmethod
    def wait_for_save(self) -> None: ...

    @abc.abstractmethod
    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Any: ...

    @abc.abstractmethod
    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None: ...

    @abc.abstractmethod
    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata: ...


@dataclasses.dataclass
class KVConnectorStats:
    data: Dict[str, Any] = dataclasses.field(default_factory=dict)


class KVConnectorPromMetrics:
    def __init__(
        self, vllm_config: Any, metric_types: Any, labelnames: List[str], per_engine_labelvalues: Dict[int, List[object]]
    ) -> None:
        self.per_engine_labelvalues = per_engine_labelvalues


def use_vllm() -> bool:
    """Makes ``kvcache.vllm`` and ``kvcache.vllm_gpu`` importable; returns whether it is with the engine's own classes."""
    if _installed("vllm"):
        return True
    _module(
        "vllm.v1.kv_offload.base",
        LookupResult=LookupResult,
        Locality=Locality,
        Medium=Medium,
        OffloadingEvent=OffloadingEvent,
        RequestOffloadingContext=RequestOffloadingContext,
    )
    _module(
        "vllm.v1.kv_offload.tiering.base",
        TransferJob=TransferJob,
        JobResult=JobResult,
        SecondaryTierManager=SecondaryTierManager,
    )
    _module(
        "vllm.distributed.kv_transfer.kv_connector.v1.base",
        KVConnectorBase_V1=KVConnectorBase,
        KVConnectorMetadata=KVConnectorMetadata,
        KVConnectorRole=KVConnectorRole,
    )
    _module(
        "vllm.distributed.kv_transfer.kv_connector.v1.metrics",
        KVConnectorStats=KVConnectorStats,
        KVConnectorPromMetrics=KVConnectorPromMetrics,
    )
    return False


class HiCacheStorage(abc.ABC):
    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        self.mem_pool_host = mem_pool_host

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None: ...

    def on_host_pools_registered(self) -> None: ...

    def batch_exists_v2(self, keys: List[str], pool_transfers: Any = None, extra_info: Any = None) -> Any: ...

    def batch_get_v2(self, transfers: Any, extra_info: Any = None) -> Any: ...

    def batch_set_v2(self, transfers: Any, extra_info: Any = None) -> Any: ...

    def batch_get_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> Any: ...

    def batch_set_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> Any: ...

    @abc.abstractmethod
    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any: ...

    @abc.abstractmethod
    def batch_get(self, keys: List[str], target_locations: Any = None, target_sizes: Any = None) -> Any: ...

    @abc.abstractmethod
    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> bool: ...

    @abc.abstractmethod
    def batch_set(
        self, keys: List[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool: ...

    @abc.abstractmethod
    def exists(self, key: str) -> bool: ...

    def batch_exists(self, keys: List[str], extra_info: Any = None) -> int: ...  # type: ignore[empty-body]

    def clear(self) -> None: ...

    def get_stats(self) -> Any: ...


@dataclasses.dataclass
class PoolTransfer:
    name: str
    host_indices: Any = None
    device_indices: Any = None
    keys: Optional[List[str]] = None
    hit_policy: str = "all_pages"
    nodes_to_load: Optional[List[Any]] = None
    indices_from_pool: Optional[str] = None
    block_pages: int = 0
    group_pages: int = 0


@dataclasses.dataclass
class PoolTransferResult:
    kv_hit_pages: int
    extra_pool_hit_pages: Dict[str, int]
    restorable_prefix_pages: Optional[List[int]] = None


def use_sglang() -> bool:
    """Makes ``kvcache.sglang`` importable; returns whether it is with the engine's own classes."""
    if _installed("sglang"):
        return True
    _module(
        "sglang.srt.mem_cache.hicache_storage",
        HiCacheStorage=HiCacheStorage,
        PoolTransfer=PoolTransfer,
        PoolTransferResult=PoolTransferResult,
    )
    return False


class Bitmap:
    def __init__(self, size: int) -> None:
        self.bits = [False] * size

    def set(self, index: int) -> None:
        self.bits[index] = True

    def test(self, index: int) -> bool:
        return self.bits[index]


class L2StoreResult(int):
    def __new__(cls, success: bool, bytes_transferred: int) -> L2StoreResult:
        return super().__new__(cls, bytes_transferred if success else -1)

    def is_successful(self) -> bool:
        return int(self) >= 0


@dataclasses.dataclass(frozen=True)
class AdapterUsage:
    total_bytes_used: int
    total_capacity_bytes: int
    bytes_by_cache_salt: Dict[str, int]


@dataclasses.dataclass(frozen=True)
class ObjectKey:
    chunk_hash: bytes
    model_name: str
    kv_rank: int
    object_group_id: int = 0
    cache_salt: str = ""

    def to_encoded_object_key(self) -> Any:
        return dataclasses.replace(self, chunk_hash=self.chunk_hash.hex())  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class KeyEntry:
    key: Any
    size_bytes: int


@dataclasses.dataclass(frozen=True)
class KeyListPage:
    entries: tuple
    next_page_token: Optional[str]


class L2AdapterInterface(abc.ABC):
    def __init__(self, max_capacity_bytes: int = 0) -> None:
        self._max_capacity_bytes = max_capacity_bytes
        self._listeners: List[Any] = []
        self._sizes: Dict[Any, int] = {}
        self.accessed: List[Any] = []

    def register_listener(self, listener: Any) -> None:
        self._listeners.append(listener)

    def _notify_keys_stored(self, keys: List[Any], sizes: List[int]) -> None:
        self._sizes.update(zip(keys, sizes))

    def _notify_keys_accessed(self, keys: List[Any]) -> None:
        self.accessed += keys

    def _notify_keys_deleted(self, keys: List[Any], sizes: List[int]) -> None:
        for key in keys:
            self._sizes.pop(key, None)

    def delete(self, keys: List[Any]) -> None: ...

    def get_usage(self) -> AdapterUsage:
        return AdapterUsage(sum(self._sizes.values()), self._max_capacity_bytes, {})

    def list_l2_keys(
        self, model_name: Optional[str] = None, page_size: int = 500, cursor: Optional[str] = None
    ) -> Any: ...

    def report_status(self) -> Dict[str, Any]: ...

    @abc.abstractmethod
    def get_store_event_fd(self) -> int: ...

    @abc.abstractmethod
    def get_lookup_and_lock_event_fd(self) -> int: ...

    @abc.abstractmethod
    def get_load_event_fd(self) -> int: ...

    @abc.abstractmethod
    def submit_store_task(self, keys: List[Any], objects: List[Any]) -> int: ...

    @abc.abstractmethod
    def pop_completed_store_tasks(self) -> Dict[int, Any]: ...

    @abc.abstractmethod
    def submit_lookup_and_lock_task(self, keys: List[Any], group_layout_descs: Any) -> int: ...

    @abc.abstractmethod
    def query_lookup_and_lock_result(self, task_id: int) -> Any: ...

    @abc.abstractmethod
    def submit_unlock(self, keys: List[Any]) -> None: ...

    @abc.abstractmethod
    def submit_load_task(self, keys: List[Any], objects: List[Any]) -> int: ...

    @abc.abstractmethod
    def query_load_result(self, task_id: int) -> Any: ...

    @abc.abstractmethod
    def close(self) -> None: ...


def use_lmcache() -> bool:
    """Makes ``kvcache.lmcache`` importable; returns whether it is with the engine's own classes."""
    if _installed("lmcache"):
        return True
    _module("lmcache.lmcache_native", Bitmap=Bitmap)
    _module("lmcache.v1.distributed.api", KeyEntry=KeyEntry, KeyListPage=KeyListPage, ObjectKey=ObjectKey)
    _module("lmcache.v1.distributed.internal_api", L2StoreResult=L2StoreResult)
    _module("lmcache.v1.distributed.l2_adapters.base", L2AdapterInterface=L2AdapterInterface)
    return False
