"""Lets vLLM's tiering offload run on the CPU, where vLLM has no worker for it. For tests.

Scheduler, primary tier, tiering manager and secondary tiers are vLLM's own. Only the copy between the engine's KV cache
and the primary tier is made here, by copies in memory in the calling thread.
"""

from __future__ import annotations

import inspect
import time
from typing import Any, List, Set

import torch
from vllm.v1.kv_offload.base import OffloadingWorker, TransferResult
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec


def _region(spec: Any) -> SharedOffloadRegion:
    """The primary tier's memory; its sizes are of chunks, and of blocks to 0.29."""
    unit = "chunk" if "num_chunks" in inspect.signature(SharedOffloadRegion).parameters else "block"
    sizes = {f"num_{unit}s": getattr(spec, f"num_{unit}s"), f"kv_bytes_per_{unit}": spec.kv_bytes_per_chunk}
    return SharedOffloadRegion(
        engine_id=spec._engine_id, rank=spec.config.parallel.rank, cpu_page_size=spec.cpu_page_size_per_worker, **sizes
    )


class CpuTieringSpec(TieringOffloadingSpec):
    """The tiering offload with a worker of copies in memory."""

    def get_worker(self, kv_caches: Any) -> OffloadingWorker:
        if self._worker is None:
            self._worker = CopyingWorker(kv_caches, self.blocks_per_chunk, _region(self))
        return self._worker


class CopyingWorker(OffloadingWorker):
    """Copies blocks of the KV cache to chunks of the primary tier and back."""

    def __init__(self, kv_caches: Any, blocks_per_chunk: int, region: SharedOffloadRegion) -> None:
        self._region = region
        self._per_chunk = blocks_per_chunk
        self._groups = kv_caches.group_data_refs
        self._pages: List[torch.Tensor] = []
        self._chunks: List[torch.Tensor] = []
        for each in kv_caches.tensors:
            size = each.page_size_bytes
            self._pages.append(each.tensor.view(torch.int8).view(-1, size))
            self._chunks.append(region.create_next_worker_view(size * blocks_per_chunk))
        self._done: List[TransferResult] = []

    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        return self._copy(job_id, src_spec, dst_spec, True)

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        return self._copy(job_id, dst_spec, src_spec, False)

    def _copy(self, job_id: int, engine: Any, tier: Any, store: bool) -> bool:
        started, copied = time.monotonic(), 0
        block_at = chunk_at = 0
        for group, (count, first) in enumerate(zip(engine.group_sizes, engine.block_indices)):
            skipped = first % self._per_chunk
            for each in range(count):
                block = int(engine.block_ids[block_at + each])
                chunk = int(tier.block_ids[chunk_at + (skipped + each) // self._per_chunk])
                part = (skipped + each) % self._per_chunk
                for ref in self._groups[group]:
                    size = ref.page_size_bytes
                    begin = part * self._pages[ref.tensor_idx].shape[1]
                    page = self._pages[ref.tensor_idx][block, :size]
                    place = self._chunks[ref.tensor_idx][chunk, begin : begin + size]
                    (place if store else page).copy_(page if store else place)
                    copied += size
            block_at += count
            chunk_at += -(-(skipped + count) // self._per_chunk) if count else 0
        self._done.append(TransferResult(job_id, True, copied, max(time.monotonic() - started, 1e-9)))
        return True

    def get_finished(self) -> List[TransferResult]:
        done, self._done = self._done, []
        return done

    def wait(self, job_ids: Set[int]) -> None:
        """Copies are done when they are submitted."""

    def shutdown(self) -> None:
        self._pages.clear()
        self._chunks.clear()
        self._region.cleanup()
