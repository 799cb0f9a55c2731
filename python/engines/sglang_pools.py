"""SGLang's own host pools on the CPU, and a process that checks what another one has stored.

    python -m engines.sglang_pools ADDRESS MODEL
"""

from __future__ import annotations

import functools
import sys
import time
import types
from array import array
from typing import Any, Iterator, List, Optional, Sequence, Tuple
from unittest import mock

import torch
from sglang.srt import runtime_context
from sglang.srt.mem_cache import memory_pool, unified_radix_cache
from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.swa import SWATokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import EvictParams, InitLoadBackParams, InsertParams, MatchPrefixParams
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.device_pool_info import KVBufferLayout, KVBuffers, MambaStateBufferInfo, MHABufferInfo, MLABufferInfo
from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig
from sglang.srt.mem_cache.memory_pool_host import DeepSeekV4PagedHostPool
from sglang.srt.mem_cache.pool_host.base import host_memory_budget_scope
from sglang.srt.mem_cache.pool_host.mamba import MambaPoolHost
from sglang.srt.mem_cache.pool_host.mha import AsymmetricMHATokenToKVPoolHost, MHATokenToKVPoolHost
from sglang.srt.mem_cache.pool_host.mla import MLATokenToKVPoolHost
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.mem_cache.unified_cache.linker_factory import create_unified_cache_linker

LAYERS, HEADS, DIM, PAGE, TOKENS = 4, 4, 64, 16, 512
MHA_LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_head", "page_unified")
MLA_LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_unified")
CPU = torch.device("cpu")
torch.set_num_threads(1)  # PyTorch's other threads spin while they wait


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


def one_rank() -> None:
    """Has SGLang take this process for an engine of its own."""
    names = ("tp", "pp", "attn_tp", "attn_dp", "attn_cp", "attn_dcp")
    ranks = {**{f"{each}_rank": 0 for each in names}, **{f"{each}_size": 1 for each in names}}
    runtime_context.get_parallel().override_permanently(**ranks)


def device_mha(layers: int = 10, dtype: torch.dtype = torch.bfloat16) -> Any:
    """Keys and values as SGLang has them on the device, which is the CPU here."""
    shape = {"head_num": HEADS, "head_dim": DIM, "layer_num": layers, "device": "cpu", "enable_memory_saver": False}
    return memory_pool.MHATokenToKVPool(TOKENS, PAGE, dtype=dtype, **shape)


def device_mla(layers: int = 3) -> Any:
    shape = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "layer_num": layers, "device": "cpu", "enable_memory_saver": False}
    return memory_pool.MLATokenToKVPool(TOKENS, PAGE, torch.bfloat16, **shape)


def device_swa() -> Any:
    """Layers of which half look at a window alone."""
    layers = {"swa_attention_layer_ids": [0, 2], "full_attention_layer_ids": [1, 3]}
    return SWAKVPool(TOKENS, TOKENS, PAGE, torch.bfloat16, head_num=HEADS, head_dim=DIM, device="cpu", **layers)


class Unified:
    """SGLang's UnifiedRadixCache over pools on the CPU, with a linker; what its scheduler and model do is done here."""

    window = 2 * PAGE

    def __init__(self, address: str, model: str, pool: Any, **extra: Any) -> None:
        one_rank()
        self.pool = pool
        components: Tuple[Any, ...] = (ComponentType.FULL,)
        if isinstance(pool, SWAKVPool):
            components += (ComponentType.SWA,)
            allocator = SWATokenToKVPoolAllocator(TOKENS, TOKENS, PAGE, torch.bfloat16, "cpu", pool, False)
        else:
            allocator = PagedTokenToKVPoolAllocator(TOKENS, PAGE, torch.bfloat16, "cpu", pool, False)
        self.allocator = allocator
        params = CacheInitParams(
            disable=False,
            req_to_token_pool=memory_pool.ReqToTokenPool(8, TOKENS, "cpu", False),
            token_to_kv_pool_allocator=allocator,
            page_size=PAGE,
            tree_components=components,
            sliding_window_size=self.window,
        )
        self.cache = unified_radix_cache.UnifiedRadixCache(params)
        config = {
            "linker": "KvCacheLinker",
            "linker_module_path": "kvcache.sglang_linker",
            "linker_extra_config": {"address": address, "timeout": 3, **extra},
        }
        told = types.SimpleNamespace(kv_cache_dtype="auto", revision=None, quantization=None, model_path=model)
        with mock.patch.object(runtime_context, "get_model", lambda: told):
            self.linker = create_unified_cache_linker(
                None, params, backend="dynamic", config=config, components=set(self.cache.components)
            )
        self.cache.init_cache_linker(self.linker)
        pool.register_layer_transfer_counter(self.linker.layer_done_counter)
        self._requests = 0

    def _alloc(self, count: int) -> torch.Tensor:
        if not isinstance(self.pool, SWAKVPool):
            return self.allocator.alloc(count)
        indices = self.allocator.full_attn_allocator.alloc(count)
        self.allocator.set_full_to_swa_mapping(indices, self.allocator.swa_attn_allocator.alloc(count))
        return indices

    def _layers(self, indices: torch.Tensor) -> Iterator[Tuple[int, torch.Tensor, torch.Tensor]]:
        """Each layer's tensors and the slots of tokens in them."""
        if isinstance(self.pool, SWAKVPool):
            kept = indices[-self.window :]
            for layer, (at, window) in sorted(self.pool.layers_mapping.items()):
                part = self.pool.swa_kv_pool if window else self.pool.full_kv_pool
                slots = self.allocator.full_to_swa_index_mapping[kept] if window else indices
                for tensor in (part.k_buffer[at], part.v_buffer[at]):
                    yield layer, tensor, slots
            return
        for layer in range(self.pool.layer_num):
            one = hasattr(self.pool, "kv_buffer")
            for side in (self.pool.kv_buffer,) if one else (self.pool.k_buffer, self.pool.v_buffer):
                yield layer, side[layer], indices

    def _content(self, tokens: Sequence[int], layer: int, tensor: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """What a model computes for the last of the tokens in a layer."""
        numbers = torch.tensor(list(tokens)[-len(slots) :], dtype=torch.float32)
        row = torch.linspace(0.5, 1.5, tensor[0].numel()).view(tensor[0].shape)
        return ((numbers.view(-1, *[1] * row.dim()) % 509 + layer) * row).to(tensor.dtype)

    def store(self, tokens: Sequence[int], seconds: float = 30.0) -> bool:
        """Computes tokens, as a request that the tree has not does, and waits until they are offloaded."""
        indices = self._alloc(len(tokens))
        for layer, tensor, slots in self._layers(indices):
            tensor[slots] = self._content(tokens, layer, tensor, slots)
        told: List[bool] = []
        commit = self.cache.linker.commit_completed_offloads
        self.cache.linker.commit_completed_offloads = lambda done: (told.extend(done), commit(done))
        self.cache.insert(InsertParams(key=RadixKey(array("q", tokens)), value=indices))
        end = time.monotonic() + seconds
        while self.cache.linker.pending_offloads and time.monotonic() < end:
            self.cache.check_hicache_events()
            time.sleep(0.001)
        del self.cache.linker.commit_completed_offloads
        return bool(told) and all(told) and not self.cache.linker.pending_offloads

    def forget(self) -> None:
        """Has the tree evict all from the device, and overwrites it."""
        self.cache.evict(EvictParams(num_tokens=TOKENS, swa_num_tokens=TOKENS))
        for _, tensor, _ in self._layers(torch.zeros(1, dtype=torch.int64)):
            tensor.zero_()

    def load(self, tokens: Sequence[int], then: Any = None) -> Tuple[int, Optional[bool], List[int]]:
        """Runs the forward pass of a prompt: tokens to load, whether they were, and the layers that were wrong.

        :param then: called when the load is queued
        """
        self._requests += 1
        request = types.SimpleNamespace(
            rid=f"request-{self._requests}", kv=None, swa_branching_seqlen=None, last_node=None, session=None
        )
        match_params = MatchPrefixParams(key=RadixKey(array("q", tokens)), req=request)
        alone = types.SimpleNamespace(disaggregation_mode="null")
        with mock.patch.object(unified_radix_cache, "get_disagg", lambda: alone):
            match = self.cache.match_prefix(match_params)
        assert match.device_prefix_len == 0, "the tree was to have forgotten"
        if match.host_hit_length == 0:
            return 0, None, []
        request.last_node = match.last_device_node
        found = InitLoadBackParams(match.best_match_node, match.host_hit_length, req=request)
        count, _ = self.cache.init_load_back(found)
        assert count == match.host_hit_length
        indices = self.cache.linker.private_load_indices[request.rid]
        if then is not None:
            then()
        counter = self.linker.layer_done_counter
        counter.set_consumer(self.cache.ready_to_load_host_cache())
        wrong = []
        for layer, tensor, slots in self._layers(indices):
            counter.wait_until(layer)
            if not torch.equal(tensor[slots], self._content(tokens[:count], layer, tensor, slots)):
                wrong.append(layer)
        landed = not self.cache.finish_external_linker_loads([request])
        self.allocator.free(indices)
        return count, landed, wrong

    def close(self) -> None:
        self.cache.linker.close()


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
