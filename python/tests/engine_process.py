"""An engine in a process of its own: stores and loads blocks through the vLLM connector, and checks every byte.

    python3 -m tests.engine_process ADDRESS SEED JOBS

Prints how many blocks were loaded and how many were wrong.
"""

from __future__ import annotations

import mmap
import random
import sys
import tempfile
import time

from tests import engines
from tests.content import content

engines.use_vllm()

from kvcache.vllm import KvCacheTier  # noqa: E402

_SIZES = (16 << 10, 64 << 10, 256 << 10, 1 << 20)
_BLOCKS = 600
_ROWS = 32


class _Engine:
    def __init__(self, address: str, size: int) -> None:
        self.size = size
        self.file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="kvcache-engine-", suffix=".mmap")
        self.file.truncate(_ROWS * size)
        self.bytes = memoryview(mmap.mmap(self.file.fileno(), _ROWS * size))
        self.tier = KvCacheTier(None, self.bytes.cast("B", [_ROWS, size]), "T", address=address, model="two processes")
        self.free = list(range(_ROWS))
        self.running: dict = {}
        self.loaded = self.wrong = 0

    def row(self, row: int) -> memoryview:
        return self.bytes[row * self.size : (row + 1) * self.size]

    def begin(self, job: int, number: int, generator: random.Random) -> None:
        keys = [b"%08d-%08d" % (self.size, (number + each) % _BLOCKS) for each in range(generator.randrange(1, 5))]
        found = [self.tier.lookup(key, None).name == "HIT" for key in keys]
        load = all(found)
        rows = [self.free.pop() for _ in keys]
        metadata = engines.JobMetadata(job, keys, rows)
        for key, row in zip(keys, rows):
            self.row(row)[:] = bytes(self.size) if load else content(key, self.size)
        self.running[job] = (load, keys, rows)
        (self.tier.submit_load if load else self.tier.submit_store)(metadata)

    def collect(self) -> None:
        for result in self.tier.get_finished_jobs():
            load, keys, rows = self.running.pop(result.job_id)
            good = set(keys if result.success else result.successful_keys or ())
            for key, row in zip(keys, rows):
                if load and key in good:
                    self.loaded += 1
                    self.wrong += self.row(row) != content(key, self.size)
            self.free += rows
        self.tier.on_request_finished(None)


def main(address: str, seed: int, jobs: int) -> int:
    generator = random.Random(seed)
    all_engines = [_Engine(address, size) for size in _SIZES[: 1 if jobs > 100_000 else None]]
    print("begins", flush=True)
    for job in range(jobs):
        engine = all_engines[generator.randrange(len(all_engines))]
        engine.begin(job, generator.randrange(_BLOCKS), generator)
        while len(engine.free) < 5:
            engine.collect()
            time.sleep(0)
    end = time.monotonic() + 30
    while any(engine.running for engine in all_engines) and time.monotonic() < end:
        for engine in all_engines:
            engine.collect()
    stuck = sum(len(engine.running) for engine in all_engines)
    print(sum(engine.loaded for engine in all_engines), sum(engine.wrong for engine in all_engines), flush=True)
    return 1 if stuck else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
