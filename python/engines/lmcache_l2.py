"""LMCache's own ``bench l2`` over several of its L2 adapters in one process, for ``./kvcache bench peers``.

Run by it with the Python of a version's environment: ``python -m engines.lmcache_l2 SPECIFICATION RESULTS``.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List, Sequence, Tuple

import torch
from lmcache.cli.commands.bench.l2_adapter_bench import runner
from lmcache.cli.commands.bench.l2_adapter_bench.data import (
    create_l1_memory_desc,
    make_memory_objects,
    make_object_keys,
)
from lmcache.v1.distributed.l2_adapters import create_l2_adapter
from lmcache.v1.distributed.l2_adapters.config import parse_args_to_l2_adapters_config

from engines.turns import Cell, Contestant, Memory, Meter, Teller, measure


def plugin(address: str, **params: Any) -> Dict[str, Any]:
    """What docs/engines.md says to give LMCache."""
    return {
        "type": "plugin",
        "module_path": "kvcache.lmcache",
        "class_name": "KvCacheL2Adapter",
        "adapter_params": {"address": address, **params},
    }


def create(specification: Dict[str, Any], buffer: torch.Tensor) -> Any:
    """Has LMCache make an adapter, as its server does."""
    config = parse_args_to_l2_adapters_config(argparse.Namespace(l2_adapter=[json.dumps(specification)]))
    return create_l2_adapter(config.adapters[0], l1_memory_desc=create_l1_memory_desc(buffer, align_bytes=4096))


class _Metered:
    """An adapter whose meter runs from the first task that it is given."""

    def __init__(self, adapter: Any, meter: Meter) -> None:
        self._adapter, self._meter = adapter, meter

    def __getattr__(self, name: str) -> Any:
        if name.startswith("submit_"):
            self._meter.start()
        return getattr(self._adapter, name)


class Adapter(Contestant):
    """An L2 adapter over LMCache's L1 memory: private by default, or a file that can be mapped."""

    def __init__(self, specification: Dict[str, Any], memory: Memory) -> None:
        self.memory = memory
        self.tensor = torch.frombuffer(memory.map, dtype=torch.uint8)
        self.adapter = create(specification, self.tensor)
        self._made: Dict[Cell, Tuple[List[List[Any]], List[List[Any]]]] = {}

    def _objects(self, cell: Cell, half: int) -> List[List[Any]]:
        """The objects of a cell to store, or to load; made once, as that overwrites the memory."""
        if cell not in self._made:
            task = cell.values * cell.size

            def made(begin: int) -> List[List[Any]]:
                return [
                    make_memory_objects(self.tensor, cell.values, cell.size, begin + each * task)
                    for each in range(cell.in_flight)
                ]

            self._made[cell] = made(0), made(self.memory.half)
            self.memory.fill()
        return self._made[cell][half]

    @staticmethod
    def _keys(cell: Cell, number: int) -> List[List[Any]]:
        return [
            make_object_keys(cell.values, f"peers-{cell.size}-{number}", each * cell.values)
            for each in range(cell.in_flight)
        ]

    def _run(self, bench: Any, half: int, cell: Cell, number: int, meter: Meter) -> float:
        objects, keys = self._objects(cell, half), self._keys(cell, number)
        self.memory.stamp(number, cell.bytes)
        said: List[str] = []
        result = bench(
            _Metered(self.adapter, meter),
            cell.in_flight,
            cell.values,
            cell.size,
            1,
            lambda _: keys,
            lambda _: objects,
            said.append,
        )
        meter.stop()
        if result.success_counts != [cell.in_flight * cell.values] or not result.round_durations:
            raise AssertionError(" ".join(said))
        return float(result.round_durations[0])

    def store(self, cell: Cell, number: int, meter: Meter) -> float:
        return self._run(runner.bench_store, 0, cell, number, meter)

    def load(self, cell: Cell, number: int, meter: Meter) -> float:
        seconds = self._run(runner.bench_load, 1, cell, number, meter)
        self.memory.check(number, cell.bytes)
        return seconds

    def drop(self, cell: Cell, number: int) -> None:
        self.adapter.delete([key for task in self._keys(cell, number) for key in task])

    def close(self) -> None:
        self.adapter.close()


def main() -> None:
    wanted = json.loads(sys.argv[1])
    tell = Teller(sys.argv[2])
    torch.set_num_threads(1)  # others spin for some milliseconds after each clearing of buffers, and are measured
    cells = [Cell(*each) for each in wanted["cells"]]
    size = max(cell.bytes for cell in cells)
    memories = {False: Memory(size), True: Memory(size, wanted["folder"])}
    adapters: Dict[str, Tuple[Contestant, Sequence[int]]] = {}
    for name, each in wanted["contestants"].items():
        try:
            adapters[name] = Adapter(each["adapter"], memories[each["mapped"]]), each["servers"]
        except Exception as failed:
            tell({"name": name, "why": f"{type(failed).__name__}: {failed}"})
    measure(adapters, cells, wanted["rounds"], wanted["warm"], tell)
    for adapter, _ in adapters.values():
        adapter.close()
    for memory in memories.values():
        memory.close()


if __name__ == "__main__":
    main()
