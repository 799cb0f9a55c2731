"""Mooncake's store beside ours, each by its own Python client, for ``./kvcache bench peers``.

Run by it with the Python of the peers' environment: ``python -m engines.mooncake_store SPECIFICATION RESULTS``. With
``own MASTER BYTES FILE`` in place of these it owns memory that Mooncake's other clients use, and makes the file then.
"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import sys
import time
from typing import Any, Dict, List, Sequence, Tuple

from kvcache.client import Client
from kvcache.mover import Mover

from engines.turns import Cell, Contestant, Memory, Meter, Teller, measure

_LOCAL_BYTES = 256 << 20
"""Of a client of Mooncake's, for what it does not copy by itself."""

_SECONDS = 60.0


def mooncake(master: str, size: int) -> Any:
    """Returns a client of Mooncake's that brings memory of a size along."""
    from mooncake.store import MooncakeDistributedStore

    store = MooncakeDistributedStore()
    failed = store.setup("localhost", "P2PHANDSHAKE", size, _LOCAL_BYTES, "tcp", "", master)
    if failed:
        raise AssertionError(f"Mooncake's client does not start: {failed}")
    return store


class _Store(Contestant):
    """Tasks of values in threads that stay, from and into memory of this process."""

    def __init__(self, memory: Memory, threads: int) -> None:
        self.memory = memory
        self._threads = concurrent.futures.ThreadPoolExecutor(threads)

    def move(self, store: bool, keys: List[str], addresses: List[int], size: int) -> None:
        raise NotImplementedError

    @staticmethod
    def keys(cell: Cell, number: int) -> List[str]:
        return [f"{cell.size}-{number}-{each}" for each in range(cell.in_flight * cell.values)]

    def _run(self, store: bool, cell: Cell, number: int, meter: Meter) -> float:
        keys = self.keys(cell, number)
        base = self.memory.address + (0 if store else self.memory.half)

        def task(each: int) -> None:
            mine = range(each * cell.values, (each + 1) * cell.values)
            self.move(store, [keys[at] for at in mine], [base + at * cell.size for at in mine], cell.size)

        meter.start()
        began = time.perf_counter()
        for done in [self._threads.submit(task, each) for each in range(cell.in_flight)]:
            done.result()
        seconds = time.perf_counter() - began
        meter.stop()
        return seconds

    def store(self, cell: Cell, number: int, meter: Meter) -> float:
        self.memory.stamp(number, cell.bytes)
        return self._run(True, cell, number, meter)

    def load(self, cell: Cell, number: int, meter: Meter) -> float:
        half = self.memory.half
        self.memory.view[half : half + cell.bytes] = bytes(cell.bytes)
        seconds = self._run(False, cell, number, meter)
        self.memory.check(number, cell.bytes)
        return seconds


class Ours(_Store):
    """What our connectors do: through a region where the server maps this memory, over connections elsewhere."""

    def __init__(self, memory: Memory, threads: int, address: str) -> None:
        super().__init__(memory, threads)
        self._client = Client(address)
        self._values = self._client.namespace("peers", layout="peers")
        self._mover = Mover(self._client, self._values)
        if self._client.shares_memory:
            self._mover.add(memory.address, 2 * memory.half)

    def move(self, store: bool, keys: List[str], addresses: List[int], size: int) -> None:
        values = [(key.encode(), ((address, size),)) for key, address in zip(keys, addresses)]
        results = self._mover.run(store, values, _SECONDS)
        if any(result.name != "COPIED" for result in results):
            raise AssertionError(str(results))

    def drop(self, cell: Cell, number: int) -> None:
        self._values.delete_all([key.encode() for key in self.keys(cell, number)])

    def close(self) -> None:
        self._mover.close()
        self._client.close()


class Mooncake(_Store):
    """``batch_put_from`` and ``batch_get_into`` with registered memory, into its own segment or another process's."""

    def __init__(self, memory: Memory, threads: int, master: str, segment: int) -> None:
        super().__init__(memory, threads)
        self._store = mooncake(master, segment)
        if self._store.register_buffer(memory.address, 2 * memory.half):
            raise AssertionError("Mooncake does not register the memory")

    def move(self, store: bool, keys: List[str], addresses: List[int], size: int) -> None:
        call, right = (self._store.batch_put_from, 0) if store else (self._store.batch_get_into, size)
        results = call(keys, addresses, [size] * len(keys))
        if any(result != right for result in results):
            raise AssertionError(str(results))

    def drop(self, cell: Cell, number: int) -> None:
        self._store.batch_remove(self.keys(cell, number), True)

    def close(self) -> None:
        self._store.close()


def main() -> None:
    if sys.argv[1] == "own":
        _owner = mooncake(sys.argv[2], int(sys.argv[3]))
        pathlib.Path(sys.argv[4]).touch()
        time.sleep(1e6)
    wanted = json.loads(sys.argv[1])
    tell = Teller(sys.argv[2])
    cells = [Cell(*each) for each in wanted["cells"]]
    memory = Memory(max(cell.bytes for cell in cells), wanted["folder"])
    memory.fill()
    threads = max(cell.in_flight for cell in cells)
    stores: Dict[str, Tuple[Contestant, Sequence[int]]] = {}
    for name, each in wanted["contestants"].items():
        try:
            made: Contestant
            if "master" in each:
                made = Mooncake(memory, threads, each["master"], each["segment"])
            else:
                made = Ours(memory, threads, each["address"])
            stores[name] = made, each["servers"]
        except Exception as failed:
            tell({"name": name, "why": f"{type(failed).__name__}: {failed}"})
    measure(stores, cells, wanted["rounds"], wanted["warm"], tell)
    for store, _ in stores.values():
        store.close()
    memory.close()


if __name__ == "__main__":
    main()
