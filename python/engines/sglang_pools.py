"""SGLang's own host pools on the CPU, and a process that checks what another one has stored.

    python -m engines.sglang_pools ADDRESS MODEL
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Iterator, List, Tuple

import torch
from sglang.srt.mem_cache.device_pool_info import KVBufferLayout, KVBuffers, MambaStateBufferInfo, MHABufferInfo, MLABufferInfo
from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig
from sglang.srt.mem_cache.memory_pool_host import DeepSeekV4PagedHostPool
from sglang.srt.mem_cache.pool_host.base import host_memory_budget_scope
from sglang.srt.mem_cache.pool_host.mamba import MambaPoolHost
from sglang.srt.mem_cache.pool_host.mha import AsymmetricMHATokenToKVPoolHost, MHATokenToKVPoolHost
from sglang.srt.mem_cache.pool_host.mla import MLATokenToKVPoolHost
from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory

LAYERS, HEADS, DIM, PAGE, TOKENS = 4, 4, 64, 16, 512
MHA_LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_head", "page_unified")
MLA_LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_unified")
CPU = torch.device("cpu")


def _small(make: Any) -> Any:
    """SGLang makes no pool where less than 10 GiB are free beside it; these take some MiB."""

    @functools.wraps(make)
    def made(*arguments: Any, **named: Any) -> Any:
        with host_memory_budget_scope(1 << 30):
            return make(*arguments, **named)

    return made


def _pointers(tensors: List[torch.Tensor]) -> torch.Tensor:
    return torch.tensor([each.data_ptr() for each in tensors], dtype=torch.uint64)


def _host(allocator: str) -> dict:
    return {"pin_memory": False, "device": "cpu", "allocator_type": allocator}


@_small
def mha(layout: str, allocator: str = "shm", dtype: torch.dtype = torch.bfloat16, v_dim: int = DIM) -> Any:
    """Keys and values of each head; two kinds of pool, by whether both are of one size."""
    k = [torch.zeros(TOKENS, HEADS, DIM, dtype=dtype) for _ in range(LAYERS)]
    v = [torch.zeros(TOKENS, HEADS, v_dim, dtype=dtype) for _ in range(LAYERS)]
    buffers = KVBuffers(
        k=tuple(k), v=tuple(v), k_data_ptrs=_pointers(k), v_data_ptrs=_pointers(v), layout=KVBufferLayout.NHD
    )
    info = MHABufferInfo(
        buffers=buffers, page_size=PAGE, head_num=HEADS, head_dim=DIM, v_head_dim=v_dim, dtype=dtype, device=CPU
    )
    kind = MHATokenToKVPoolHost if v_dim == DIM else AsymmetricMHATokenToKVPoolHost
    layers = {"device_capacity_tokens": TOKENS, "start_layer": 0, "end_layer": LAYERS}
    return kind(info, 2.0, 0, PAGE, layout, **_host(allocator), **layers)


@_small
def mla(layout: str, allocator: str = "shm", rank: int = 512, rope: int = 64) -> Any:
    """One compressed row a token, which all ranks have alike."""
    rows = [torch.zeros(TOKENS, 1, rank + rope, dtype=torch.bfloat16) for _ in range(LAYERS)]
    info = MLABufferInfo(
        buffers=tuple(rows),
        data_ptrs=_pointers(rows),
        layer_indices=tuple(range(LAYERS)),
        device_layer_num=LAYERS,
        page_size=PAGE,
        kv_lora_rank=rank,
        qk_rope_head_dim=rope,
        kv_cache_dim=rank + rope,
        dtype=torch.bfloat16,
        device=CPU,
    )
    layers = {"device_capacity_tokens": TOKENS, "start_layer": 0, "end_layer": LAYERS, "target_layer_num": LAYERS}
    return MLATokenToKVPoolHost(info, 2.0, 0, PAGE, layout, **_host(allocator), **layers)


@_small
def mamba(allocator: str = "shm", beside: bool = False) -> Any:
    """States of recurrent layers, a page each; ``beside``: with a further tensor in each slot."""
    extra = (torch.zeros(32, 48, dtype=torch.float32),) if beside else ()
    info = MambaStateBufferInfo(
        temporal=torch.zeros(LAYERS, 32, 4, 8, 16), conv=(torch.zeros(LAYERS, 32, 64, 3),), extra_checkpoint_buffers=extra
    )
    return MambaPoolHost(info, 2.0, 0, device_capacity=32, layout="page_first", **_host(allocator))


@_small
def rows(name: str, layout: str = "layer_first", allocator: str = "shm") -> Any:
    """A pool of DeepSeek V4: opaque rows."""
    buffers = [torch.zeros(32, 4096, dtype=torch.uint8) for _ in range(LAYERS)]
    return DeepSeekV4PagedHostPool(name, buffers, 4096, 64, PAGE, layout=layout, page_aligned_only=True, **_host(allocator))


def indices(pool: Any, pages: Any) -> torch.Tensor:
    """SGLang's indices of pages of a pool."""
    return torch.cat([torch.arange(page * pool.page_size, (page + 1) * pool.page_size) for page in pages])


def tensors(pool: Any, page: int) -> List[torch.Tensor]:
    """All bytes of a page, as the pool's buffers are laid out; written here anew, not by the pool."""
    size, first = pool.page_size, page * pool.page_size
    layout, whole = pool.layout, pool.kv_buffer
    if isinstance(pool, MambaPoolHost):
        return [each[page] for each in whole]
    if isinstance(pool, DeepSeekV4PagedHostPool):
        return [each[page] for each in whole] if layout == "layer_first" else [whole[page]]
    if layout == "page_unified":
        return [whole[page]]
    sides = list(whole) if isinstance(pool, MHATokenToKVPoolHost) else [whole]
    if layout == "layer_first":
        return [side[layer, first : first + size] for side in sides for layer in range(LAYERS)]
    if layout == "page_first":
        return [side[first : first + size] for side in sides]
    return [side[page] for side in sides]


def fill(pool: Any, page: int, seed: int) -> None:
    """Writes what a seed makes into a page."""
    source = torch.Generator().manual_seed(seed)
    for each in tensors(pool, page):
        each.view(torch.uint8).copy_(torch.randint(0, 256, each.view(torch.uint8).shape, generator=source).to(torch.uint8))


def holds(pool: Any, page: int, seed: int) -> bool:
    """Whether a page has exactly what a seed makes."""
    source = torch.Generator().manual_seed(seed)
    return all(
        torch.equal(
            each.view(torch.uint8), torch.randint(0, 256, each.view(torch.uint8).shape, generator=source).to(torch.uint8)
        )
        for each in tensors(pool, page)
    )


def config(address: str, model: str = "sgl/model", extra: Any = None, **changes: Any) -> HiCacheStorageConfig:
    """What SGLang's controller makes of its command line."""
    told = {
        "backend_name": "kvcache",
        "module_path": "kvcache.sglang",
        "class_name": "KvCacheHiCache",
        "interface_v1": 1,
        "allocator": "shm",
        "address": address,
        "timeout": 3,
        **(extra or {}),
    }
    values = {
        **{f"{each}_rank": 0 for each in ("tp", "pp", "attn_cp")},
        **{f"{each}_size": 1 for each in ("tp", "pp", "attn_cp")},
        "is_mla_model": False,
        "enable_storage_metrics": False,
        "is_page_first_layout": False,
        "model_name": model,
        "extra_config": told,
        **changes,
    }
    return HiCacheStorageConfig(**values)


def backend(storage_config: HiCacheStorageConfig, pool: Any) -> Any:
    """Has SGLang make the backend, as its controller does."""
    made = StorageBackendFactory.create_backend("dynamic", storage_config, pool)
    made.register_mem_pool_host(pool)
    made.on_host_pools_registered()
    return made


def layouts() -> Iterator[Tuple[str, Any]]:
    """A pool of each kind and layout that the CPU can have."""
    for layout in MHA_LAYOUTS:
        yield f"mha-{layout}", mha(layout)
    for layout in MLA_LAYOUTS:
        yield f"mla-{layout}", mla(layout)
    for layout in ("page_first", "page_first_direct"):
        yield f"asymmetric-{layout}", mha(layout, v_dim=32)


def keys_of(name: str, count: int) -> List[str]:
    return [f"{name}-{number:05d}" for number in range(count)]


def check(address: str, model: str) -> int:
    """Loads six pages of each layout that another process has stored; returns how many are absent or wrong."""
    bad = 0
    for name, pool in layouts():
        made = backend(config(address, model, is_mla_model=name.startswith("mla")), pool)
        loaded = made.batch_get_v1(keys_of(name, 6), indices(pool, range(20, 26)))
        found = made.batch_exists(keys_of(name, 7))
        right = [ok and holds(pool, 20 + page, page) for page, ok in enumerate(loaded)]
        print(name, found, right, flush=True)
        bad += (found != 6) + right.count(False)
        made.close()
    return bad


if __name__ == "__main__":
    sys.exit(check(*sys.argv[1:]))
