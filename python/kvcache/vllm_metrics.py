"""Counters of the connectors to vLLM, as vLLM takes them and shows them in its log and its metrics."""

from __future__ import annotations

import collections
import threading
from collections.abc import Mapping
from typing import Any, Counter, Dict, List, Optional, Tuple

try:
    from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats
except ImportError:  # a vLLM that asks for no metrics of a connector
    KVConnectorPromMetrics = KVConnectorStats = object

COUNTERS = {
    "vllm:kvcache_stores": "Blocks that were to be stored, by result: copied, present, declined, no_room, skipped as too"
    " much waited already, failed.",
    "vllm:kvcache_loads": "Blocks that were to be loaded, by result: copied, absent, failed.",
}
"""Of vLLM's metrics, with the label ``result``."""

CONNECTED = "vllm:kvcache_connected"
CONNECTED_HELP = "Whether vLLM's scheduler has a session with the KVCache server, 1 or 0."

STORES, LOADS = COUNTERS


class Counts:
    """Blocks by counter and result, until vLLM takes them. Threads: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Tuple[str, str]] = collections.Counter()

    def add(self, counter: str, result: str, blocks: int = 1) -> None:
        """Counts blocks."""
        if blocks > 0:
            with self._lock:
                self._counts[counter, result] += blocks

    def take(self) -> Dict[Tuple[str, str], int]:
        """Returns what was counted since the last call."""
        with self._lock:
            taken = dict(self._counts)
            self._counts.clear()
        return taken


class Connected:
    """Whether there is a session, told when that changes."""

    def __init__(self) -> None:
        self._told: Optional[bool] = None

    def take(self, connected: bool) -> Dict[str, int]:
        """Returns the gauge, or nothing where it is as it was told last."""
        if connected == self._told:
            return {}
        self._told = connected
        return {CONNECTED: int(connected)}


class KvCacheStats(KVConnectorStats):
    """What was counted in a step: numbers by counter and result, with a blank between them, and the gauge."""

    @classmethod
    def of(cls, counts: Dict[Tuple[str, str], int]) -> KvCacheStats:
        return cls(data={" ".join(name): count for name, count in counts.items()})

    def reset(self) -> None:
        """Forgets all."""
        self.data = {}

    def aggregate(self, other: Any) -> KvCacheStats:
        """Adds those of another worker or step, which is the later one."""
        for name, value in other.data.items():
            self.data[name] = value if name == CONNECTED else self.data.get(name, 0) + value
        return self

    def reduce(self) -> Dict[str, Any]:
        """Returns what vLLM logs."""
        return {name.rpartition(":")[2]: value for name, value in self.data.items()}

    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not self.data


class KvCachePromMetrics(KVConnectorPromMetrics):
    """The counters and the gauge among vLLM's own, by engine."""

    def __init__(
        self,
        vllm_config: Any,
        metric_types: Any,
        labelnames: List[str],
        per_engine_labelvalues: Dict[int, List[object]],
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        self._metrics = {
            name: self._counter_cls(name=name, documentation=text, labelnames=[*labelnames, "result"])
            for name, text in COUNTERS.items()
        }
        self._metrics[CONNECTED] = self._gauge_cls(
            name=CONNECTED, documentation=CONNECTED_HELP, labelnames=labelnames
        )

    def observe(self, transfer_stats_data: Dict[str, Any], engine_idx: int = 0) -> None:
        """Takes what was counted in a step."""
        for told, value in transfer_stats_data.items():
            name, *result = told.split(" ")
            metric = self._metrics[name].labels(*self.per_engine_labelvalues[engine_idx], *result)
            metric.inc(value) if result else metric.set(value)


def metric_definitions() -> Dict[str, Any]:
    """The counters and the gauge of a tier, as vLLM has them described."""
    from vllm.v1.kv_offload.base import OffloadingCounterMetadata, OffloadingGaugeMetadata

    defined = {name: OffloadingCounterMetadata(text, ("result",)) for name, text in COUNTERS.items()}
    return {**defined, CONNECTED: OffloadingGaugeMetadata(CONNECTED_HELP)}


def tier_stats(counts: Mapping[Tuple[str, str], int], connected: Mapping[str, int]) -> Any:
    """What a tier has counted, as vLLM takes it; None where that is nothing."""
    if not counts and not connected:
        return None
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import OffloadingConnectorStats

    stats = OffloadingConnectorStats()
    for (name, result), count in counts.items():
        stats.increase_counter(name, count, (result,))
    for name, value in connected.items():
        stats.set_gauge(name, value)
    return stats
