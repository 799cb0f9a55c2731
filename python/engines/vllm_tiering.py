"""vLLM's own manager of offloading tiers over a secondary tier of ours, without an engine. For tests."""

from __future__ import annotations

import inspect
import itertools
import time
import uuid
from typing import Any, Dict, List, Sequence

from tests import engines as doubles
from tests.content import content
from vllm.v1.kv_offload.base import LookupResult, ReqContext, ScheduleEndContext
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.kv_offload.tiering.manager import CPUPrimaryTierOffloadingManager, TieringOffloadingManager

from kvcache.vllm import KvCacheTier

ROW = 64 << 10
_MOST_SECONDS = 30


def _sizes(of: Any, chunks: int) -> Any:
    """Arguments that speak of chunks, and of blocks to 0.29."""
    unit = "chunk" if "num_chunks" in inspect.signature(of).parameters else "block"
    sizes = {f"num_{unit}s": chunks, f"kv_bytes_per_{unit}": ROW}
    return {name: size for name, size in sizes.items() if name in inspect.signature(of).parameters}


class Tiering:
    """Requests as vLLM's offloading scheduler drives them: look-ups until nothing is pending, a load, a store."""

    def __init__(self, model: str, rows: int = 32, **settings: Any) -> None:
        region = SharedOffloadRegion(
            engine_id=uuid.uuid4().hex, rank=0, cpu_page_size=ROW, **_sizes(SharedOffloadRegion, rows)
        )
        primary = CPUPrimaryTierOffloadingManager(
            mmap_region=region, **_sizes(CPUPrimaryTierOffloadingManager, rows)
        )
        self._rows = primary.get_kv_memoryview()
        self.tier = KvCacheTier(doubles.offloading_spec(), self._rows, "kvcache", model=model, **settings)
        self.manager = TieringOffloadingManager(primary, [self.tier])
        self._numbers = itertools.count()
        self.wrong = 0
        """Blocks that came with other bytes."""
        self.counts: Dict[str, float] = {}
        """What vLLM's metrics were told."""

    def step(self) -> None:
        self.manager.on_schedule_end(ScheduleEndContext([], []))
        stats = self.manager.get_stats()
        for name, value in (stats.reduce() if stats is not None else {}).items():
            self.counts[name] = value + (0 if name.endswith("connected") else self.counts.get(name, 0))

    def _row(self, spec: Any, at: int) -> memoryview:
        chunks = getattr(spec, "chunk_ids", None)
        row = int((spec.block_ids if chunks is None else chunks)[at])
        return self._rows.cast("B")[row * ROW : (row + 1) * ROW]

    def request(self, keys: Sequence[bytes]) -> int:
        """Returns how many leading keys were found."""
        context = ReqContext(f"r{next(self._numbers)}", {"kvcache": {"kind": "chat"}})
        manager = self.manager
        manager.on_new_request(context)
        hits = self._found(keys, context)
        if hits:
            spec = manager.prepare_load(keys[:hits], context)
            for at, key in enumerate(keys[:hits]):
                self.wrong += self._row(spec, at) != content(key, ROW)
            manager.complete_load(keys[:hits], context)
            manager.touch(keys[:hits], context)
        if hits < len(keys):
            room = manager.prepare_store(keys[hits:], context)
            if room is not None and room.keys_to_store:
                for at, key in enumerate(room.keys_to_store):
                    self._row(room.store_spec, at)[:] = content(key, ROW)
                manager.complete_store(room.keys_to_store, context)
        manager.on_request_finished(context)
        self.step()
        return hits

    def _found(self, keys: Sequence[bytes], context: Any) -> int:
        end = time.monotonic() + _MOST_SECONDS
        while time.monotonic() < end:
            results: List[Any] = []
            for key in keys:
                results.append(self.manager.lookup(key, context))
                if results[-1] is LookupResult.MISS:
                    break
            if not {LookupResult.RETRY, LookupResult.HIT_PENDING}.intersection(results):
                return results.count(LookupResult.HIT)
            self.step()
            time.sleep(0.001)
        raise AssertionError(f"a look-up was not answered within {_MOST_SECONDS} s")

    def is_idle(self) -> bool:
        self.step()
        return not self.manager.has_pending_work()

    def connected(self) -> bool:
        return bool(self.tier._client.connected)

    def close(self) -> None:
        self._rows = None
        self.manager.shutdown()
