"""What the HiCache backend reads of SGLang, where its versions differ. Tried with SGLang 0.5.23."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Dict, List, Optional, Tuple

import sglang.srt.mem_cache.hicache_storage as _storage

from kvcache.settings import check_version

OLDEST, NEWEST = "0.5.23", "0.5.23"

_RANKS = ("tp", "pp", "attn_cp", "dcp")
_SHAPE = ("layer_num", "start_layer", "end_layer", "head_num", "head_group_num", "head_dim", "v_head_dim", "kv_cache_dim")
_BYTES = "torch.uint8"
"""How SGLang keeps both fp8 types, and rows of several types."""


def check() -> None:
    """Warns where this SGLang is none of those that were tried."""
    check_version("sglang", OLDEST, NEWEST)


def setting(bag: str, name: str) -> Any:
    """Returns a setting that SGLang's process was started with, or None where it cannot be read."""
    try:
        from sglang.srt import runtime_context

        return getattr(getattr(runtime_context, f"get_{bag}")(), name, None)
    except (ImportError, AttributeError, ValueError, RuntimeError):
        return None


def is_logical(pool: Any) -> bool:
    """Whether a pool only counts slots: all bytes of its pages are in pools beside it."""
    return getattr(pool, "kv_buffer", pool) is None and getattr(pool, "k_buffer", None) is None


def facts_of(config: Any, model: Optional[str], pool_name: str, pool: Any) -> Dict[str, Any]:
    """What must match between engines for pages of a pool: arguments of ``settings.identity``.

    :param model: in place of SGLang's name and path of it
    :param pool: None for tensors before there is a pool
    """
    facts = {
        "model": model or getattr(config, "model_name", None),
        "revision": setting("model", "revision") or "",
        "path": "" if model else setting("model", "model_path") or "",
        "weights": setting("model", "quantization") or "",
        "pool": pool_name,
        "mla": getattr(config, "is_mla_model", None),
        **_ranks(config, pool_name, pool),
        "page": getattr(config, "logical_page_size", None) or getattr(pool, "page_size", None),
        "lcm": getattr(config, "tp_lcm_size", None) or 0,
        "split": bool(getattr(config, "should_split_heads", False)),
    }
    if pool is None:
        return {**facts, "dtype": "of the tensor", "page": "of the tensor"}
    facts["dtype"] = _dtype(pool)
    facts["layout"] = getattr(pool, "layout", None)
    facts["format"] = getattr(pool, "storage_format_tag", None) or ""
    facts["shape"] = ",".join(str(getattr(pool, name, "")) for name in _SHAPE)
    layers, target = getattr(pool, "layer_num", None), getattr(pool, "target_layer_num", None)
    if pool_name.startswith("draft") or layers != (layers if target is None else target):
        facts["draft"] = _drafts()
    return facts


def _drafts() -> str:
    """What drafts come from."""
    names = ("model_path", "model_revision", "kv_cache_dtype")
    return "/".join(str(setting("spec", f"speculative_draft_{name}") or "") for name in names)


def _ranks(config: Any, pool_name: str, pool: Any) -> Dict[str, Any]:
    """The part of the model that this process has; pages that all ranks have alike are of no rank."""
    told: Dict[str, Any] = {}
    for each in _RANKS:
        rank, size = getattr(config, f"{each}_rank", 0), getattr(config, f"{each}_size", 1)
        told[each] = None if rank is None or size is None else f"{rank}of{size}"
    heads = pool_name == "mamba" or (hasattr(pool, "v_head_dim") and not hasattr(pool, "kv_cache_dim"))
    if getattr(config, "is_mla_model", False) and not heads:
        told["tp"] = "all"
    return told


def _dtype(pool: Any) -> Optional[str]:
    """The type of a pool's values. Where it keeps plain bytes, what the engine was started with names it."""
    kept = getattr(pool, "dtype", None)
    if kept is None:
        return None
    plain = str(kept).replace("torch.", "")
    if str(kept) != _BYTES:
        return plain
    logical = getattr(getattr(pool, "device_pool", None), "dtype", None)
    told = setting("model", "kv_cache_dtype")
    if told is None and logical in (None, kept):
        return None
    return f"{plain} of {told or ''} {str(logical or '').replace('torch.', '')}".strip()


def one_page(pool: Any) -> Any:
    """Returns the indices of a pool's first page."""
    size = int(getattr(pool, "logical_page_size", None) or pool.page_size)
    try:
        import torch
    except ImportError:
        return list(range(size))
    return torch.arange(size, dtype=torch.int64)


def pieces_of(pool: Any, indices: Any) -> List[List[Any]]:
    """Returns the pieces of each page, (address, size) in order.

    :raises ValueError: where this SGLang does not say where a page of such a pool lies
    """
    size = int(getattr(pool, "logical_page_size", None) or pool.page_size)
    count = len(indices) // size
    if getattr(pool, "layout", None) == "page_unified":
        bytes_a_page = pool.page_unified_layout.bytes_per_page
        base = int(pool.kv_buffer.data_ptr())
        return [[(base + int(first) // size * bytes_a_page, bytes_a_page)] for first in indices[::size]]
    if getattr(pool, "slot_state_buffers", None):
        # SGLang gives no list for states that have more beside them in the same slot; it can name their tensors.
        return [_contiguous(pool._iter_page_tensors(int(first))) for first in indices[::size]]
    addresses, sizes = pool.get_page_buffer_meta(indices)
    if count == 0 or len(addresses) % count or len(sizes) != len(addresses) or len(indices) % size:
        raise ValueError(f"{len(addresses)} pieces for {len(indices)} indices of pages of {size}")
    each = len(addresses) // count
    return [
        [(int(addresses[at]), int(sizes[at])) for at in range(begin, begin + each)]
        for begin in range(0, len(addresses), each)
    ]


def _contiguous(tensors: Iterable[Any]) -> List[Any]:
    found = [each for each in tensors if each.numel()]
    if not all(each.is_contiguous() for each in found):
        raise ValueError("a page of tensors that are not contiguous")
    return [(int(each.data_ptr()), int(each.nbytes)) for each in found]


def found(pages: int, pools: Dict[Any, int], restorable: Sequence[int]) -> Any:
    """SGLang's answer of a look-up in several pools."""
    kind = _storage.PoolTransferResult
    told = {"kv_hit_pages": pages, "extra_pool_hit_pages": pools, "restorable_prefix_pages": list(restorable)}
    return kind(**{name: value for name, value in told.items() if name in kind.__dataclass_fields__})


def storage_metrics(copies: Sequence[Tuple[bool, int, float]]) -> Any:
    """SGLang's account of copies: whether each was a store, its pages, and its GB/s."""
    from sglang.srt.observability.metrics_collector import StorageMetrics

    told = StorageMetrics()
    for store, pages, speed in copies:
        (told.backup_pgs if store else told.prefetch_pgs).append(pages)
        (told.backup_bandwidth if store else told.prefetch_bandwidth).append(speed)
    return told


def device_pools(params: Any, components: Any) -> Any:
    """SGLang's pools on the device, as its linkers see them; also of models for which SGLang itself lists none.

    :raises ValueError: for a kind of pool that no linker can move
    """
    from sglang.srt.mem_cache.hybrid_cache import linker_pool_assembler as theirs
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool
    from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool

    pool, page = params.token_to_kv_pool_allocator.get_kvcache(), params.page_size
    drafts = (*params.mtp_draft_device_pools, *getattr(params, "sidecar_draft_device_pools", ()))
    names = {each.name for each in components}
    if not drafts and type(pool) is SWAKVPool and names == {"FULL", "SWA"}:
        mappings: Dict[Any, Dict[int, int]] = {_storage.PoolName.KV: {}, _storage.PoolName.SWA: {}}
        for layer, (at, window) in pool.layers_mapping.items():
            mappings[_storage.PoolName.SWA if window else _storage.PoolName.KV][layer - pool.start_layer] = at
        pools = {_storage.PoolName.KV: pool.full_kv_pool, _storage.PoolName.SWA: pool.swa_kv_pool}
        entries = [theirs._mha_device_pool_entry(name, pools[name], layers, page) for name, layers in mappings.items()]
        return theirs.DevicePoolGroup(entries, sum(map(len, mappings.values())), page)
    if not drafts and names == {"FULL"} and type(pool) is MHATokenToKVPool:
        layers = {layer: layer for layer in range(pool.layer_num)}
        entry = theirs._mha_device_pool_entry(_storage.PoolName.KV, pool, layers, page)
        return theirs.DevicePoolGroup([entry], pool.layer_num, page)
    if not drafts and names == {"FULL"} and type(pool) is MLATokenToKVPool:
        entry = theirs.DevicePoolEntry(
            name=_storage.PoolName.KV,
            indices_from_pool=_storage.PoolName.KV,
            device_pool=pool,
            components=[pool.kv_buffer],
            layer_mapping={layer: layer for layer in range(pool.layer_num)},
            page_size=page,
            rows_are_pages=False,
        )
        return theirs.DevicePoolGroup([entry], pool.layer_num, page, rank_replicated=True)
    return theirs.resolve_hybrid_device_pool_group(kvcache=pool, page_size=page, params=params, components=components)


def linker_facts(params: Any, model: Optional[str], group: Any) -> Dict[str, Any]:
    """What must match between engines for pages of all pools of the device: arguments of ``settings.identity``."""
    from sglang.srt.runtime_context import get_parallel

    parallel = get_parallel()
    config = _storage.HiCacheStorageConfig(
        tp_rank=parallel.attn_tp_rank,
        tp_size=parallel.attn_tp_size,
        pp_rank=params.pp_rank,
        pp_size=params.pp_size,
        attn_cp_rank=params.attn_cp_rank,
        attn_cp_size=params.attn_cp_size,
        is_mla_model=group.rank_replicated,
        enable_storage_metrics=False,
        is_page_first_layout=False,
        model_name=setting("serving", "served_model_name") or setting("model", "model_path"),
    )
    pool = params.token_to_kv_pool_allocator.get_kvcache()
    facts = facts_of(config, model, "linker", None)
    facts["dtype"] = _dtype(pool if hasattr(pool, "dtype") else getattr(pool, "full_kv_pool", None))
    facts["dcp"] = f"{parallel.attn_dcp_rank}of{parallel.attn_dcp_size}"
    facts["page"] = params.page_size
    facts["layers"] = group.num_layers
    for entry in group.entries:
        tensors = [f"{each.dtype}{list(each.shape[1:])}" for each in entry.kv_buffer]
        facts[str(entry.name)] = f"{entry.page_size} {' '.join(tensors)}".replace("torch.", "")
    facts["draft"] = _drafts()
    return facts


def follow_states(params: Any, pools: Any, counter: Any) -> None:
    """Has layers with states wait for their loads too."""
    if _storage.PoolName.MAMBA in pools:
        params.req_to_token_pool.register_layer_transfer_counter(counter)
