"""Measures stores of values beside each other: the same work on each in turn, round by round, every byte compared.

For ``./kvcache bench peers``. Processes that need the packages of a peer import this, so it needs none itself.
"""

from __future__ import annotations

import abc
import array
import ctypes
import json
import mmap
import os
import random
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kvcache.memory import address_of

_PAGE = 4096
_TURN_BYTES = 64 << 20
"""That a turn moves at least, so that it is longer than the steps of a scheduler."""

_TICKS = os.sysconf("SC_CLK_TCK")


class Cell(NamedTuple):
    """A load: tasks of values of one size."""

    size: int
    values: int
    """Of a task."""
    in_flight: int
    """Tasks that are on their way together."""

    @property
    def bytes(self) -> int:
        return self.size * self.values * self.in_flight

    def __str__(self) -> str:
        size = f"{self.size >> 20} MiB" if self.size >= 1 << 20 else f"{self.size >> 10} KiB"
        return f"{self.values} x {size}, {self.in_flight} in flight"


class Memory:
    """What values are stored from, and as much again that they are loaded into.

    :param folder: of a file that a server can map; None for private memory
    """

    def __init__(self, size: int, folder: Optional[str] = None) -> None:
        self.half = size
        self.file: Optional[Any] = None
        if folder is not None:
            self.file = tempfile.NamedTemporaryFile(dir=folder, prefix="kvcache-peers-")
            self.file.truncate(2 * size)
        self.map = mmap.mmap(self.file.fileno(), 2 * size) if self.file else mmap.mmap(-1, 2 * size, mmap.MAP_PRIVATE)
        self.view = memoryview(self.map)
        self.address = address_of(self.view)

    def fill(self) -> None:
        """Makes all bytes random."""
        part = random.Random(7).randbytes(1 << 20)
        for at in range(0, 2 * self.half, len(part)):
            end = min(at + len(part), 2 * self.half)
            self.view[at:end] = part[: end - at]

    def stamp(self, number: int, size: int) -> None:
        """Marks each page of the first bytes to store, so that no other task's values pass for them."""
        words = self.view[:size].cast("Q")[:: _PAGE // 8]
        words[:] = memoryview(array.array("Q", [number]) * len(words))

    def check(self, number: int, size: int) -> None:
        """Raises where what was loaded is not what was stored with a number."""
        self.stamp(number, size)
        if ctypes.CDLL(None).memcmp(
            ctypes.c_void_p(self.address), ctypes.c_void_p(self.address + self.half), ctypes.c_size_t(size)
        ):
            raise AssertionError("wrong bytes")

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


class Meter:
    """Processor seconds of this process and of the servers that work for it, while it runs."""

    def __init__(self, servers: Sequence[int]) -> None:
        self.servers = servers
        self.seconds = 0.0
        self._began: Optional[float] = None

    def start(self, *_: object) -> None:
        if self._began is None:
            self._began = self._now()

    def stop(self) -> None:
        if self._began is not None:
            self.seconds += self._now() - self._began
            self._began = None

    def _now(self) -> float:
        return time.process_time() + sum(map(processor_seconds, self.servers))


def processor_seconds(process: int) -> float:
    """Processor seconds of all threads of a process, by its clock, whose number Linux makes from the process's."""
    return time.clock_gettime((~process << 3) | 2)


def busy_seconds() -> float:
    """Processor seconds that all processes have used, and that the host has given to others."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, hard, soft, stolen = (int(each) for each in file.readline().split()[1:9])
    return (user + nice + system + hard + soft + stolen) / _TICKS


class Contestant(abc.ABC):
    """One way to store values. Each call is a task's worth of work for a cell, with values of its own by number."""

    @abc.abstractmethod
    def store(self, cell: Cell, number: int, meter: Meter) -> float:
        """Stores values, and returns the seconds that it took."""

    @abc.abstractmethod
    def load(self, cell: Cell, number: int, meter: Meter) -> float:
        """Loads values that were stored, compares each byte, and returns the seconds that loading took."""

    @abc.abstractmethod
    def drop(self, cell: Cell, number: int) -> None:
        """Deletes values."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends what this began."""


def measure(
    contestants: Dict[str, Tuple[Contestant, Sequence[int]]],
    cells: Sequence[Cell],
    rounds: int,
    warm_seconds: float,
    tell: Callable[[Dict[str, Any]], None],
) -> None:
    """Runs each cell in rounds of a turn of every contestant, after turns of all cells that do not count.

    :param contestants: by name, with the processes that serve them; one that fails is told of and left out
    """
    racing = dict(contestants)
    numbers = iter(range(1, sys.maxsize))
    servers = {each for _, pids in contestants.values() for each in pids}

    def own_seconds() -> float:
        return time.process_time() + sum(map(processor_seconds, servers))

    def turn(name: str, cell: Cell) -> List[Dict[str, Any]]:
        contestant, pids = racing[name]
        repeats = max(1, -(-_TURN_BYTES // cell.bytes)) if warm_seconds else 1
        tasks = [next(numbers) for _ in range(repeats)]
        rows = []
        for operation in ("store", "load"):
            meter = Meter(pids)
            seconds = [getattr(contestant, operation)(cell, task, meter) for task in tasks]
            rows.append(
                {
                    "name": name,
                    "operation": operation,
                    "cell": list(cell),
                    "rate": cell.bytes / statistics.median(seconds) / 1e9,
                    "processor": meter.seconds / (cell.bytes * repeats) * 1e9,
                }
            )
        for task in tasks:
            contestant.drop(cell, task)
        return rows

    def attempt(name: str, cell: Cell) -> List[Dict[str, Any]]:
        try:
            return turn(name, cell)
        except Exception as failed:
            tell({"name": name, "why": f"{cell}: {type(failed).__name__}: {failed}"})
            del racing[name]
            return []

    for cell in cells:  # a server that compiles as it runs is not measured before it is done
        for name in list(racing):
            end = time.monotonic() + warm_seconds
            while name in racing and time.monotonic() < end:
                attempt(name, cell)
    began, others = time.monotonic(), busy_seconds() - own_seconds()
    for cell in cells:
        for number in range(-1 if warm_seconds else 0, rounds):
            names = list(racing)
            first = number % max(1, len(names))
            for name in names[first:] + names[:first]:
                for row in attempt(name, cell):
                    if number >= 0:
                        tell({**row, "round": number})
    elapsed = time.monotonic() - began
    tell({"others": (busy_seconds() - own_seconds() - others) / elapsed, "seconds": elapsed})


class Teller:
    """Writes what was measured to a file, a line of JSON each."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115

    def __call__(self, row: Dict[str, Any]) -> None:
        print(json.dumps(row), file=self._file, flush=True)
