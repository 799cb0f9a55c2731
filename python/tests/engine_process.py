"""An engine in a process of its own: stores and loads blocks through a connector, and checks every byte.

    python3 -m tests.engine_process ADDRESS SEED JOBS [vllm|sglang|lmcache]

Prints how many blocks were loaded and how many were wrong.
"""

from __future__ import annotations

import mmap
import os
import random
import sys
import tempfile
import time
from typing import Any

from tests import engines
from tests.content import content

os.environ.setdefault("PYTHONHASHSEED", "0")

_SIZES = (16 << 10, 64 << 10, 256 << 10, 1 << 20)
_BLOCKS = 600
_ROWS = 32


class Engine:
    """Rows of one size in a file of /dev/shm, and blocks that are loaded where they are found, else stored."""

    def __init__(self, address: str, size: int) -> None:
        self.size = size
        prefix = f"kvcache-engine-{os.getpid()}-"  # a process that is killed leaves it to its parent
        self.file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix=prefix, suffix=".mmap")
        self.file.truncate(_ROWS * size)
        self.bytes = memoryview(mmap.mmap(self.file.fileno(), _ROWS * size))
        self.free = list(range(_ROWS))
        self.running: dict = {}
        self.loaded = self.wrong = 0
        self.open(address)

    def open(self, address: str) -> None:
        raise NotImplementedError

    def found(self, keys: list[bytes]) -> bool:
        """Returns whether all keys are there."""
        raise NotImplementedError

    def submit(self, store: bool, job: int, keys: list[bytes], rows: list[int]) -> None:
        raise NotImplementedError

    def finished(self) -> list[tuple[int, set]]:
        """Returns the jobs that are done, each with the keys that succeeded."""
        raise NotImplementedError

    def row(self, row: int) -> memoryview:
        return self.bytes[row * self.size : (row + 1) * self.size]

    def begin(self, job: int, number: int, generator: random.Random) -> None:
        keys = [b"%08d-%08d" % (self.size, (number + each) % _BLOCKS) for each in range(generator.randrange(1, 5))]
        load = self.found(keys)
        rows = [self.free.pop() for _ in keys]
        for key, row in zip(keys, rows):
            self.row(row)[:] = bytes(self.size) if load else content(key, self.size)
        self.running[job] = (load, keys, rows)
        self.submit(not load, job, keys, rows)

    def collect(self) -> None:
        for job, good in self.finished():
            load, keys, rows = self.running.pop(job)
            for key, row in zip(keys, rows):
                if load and key in good:
                    self.loaded += 1
                    self.wrong += self.row(row) != content(key, self.size)
            self.free += rows


class VllmEngine(Engine):
    def open(self, address: str) -> None:
        engines.use_vllm()
        from kvcache.vllm import KvCacheTier

        view = self.bytes.cast("B", [_ROWS, self.size])
        self.tier = KvCacheTier(engines.offloading_spec(), view, "T", address=address, model="two processes")

    def found(self, keys: list[bytes]) -> bool:
        return all(self.tier.lookup(key, None).name == "HIT" for key in keys)

    def submit(self, store: bool, job: int, keys: list[bytes], rows: list[int]) -> None:
        (self.tier.submit_store if store else self.tier.submit_load)(engines.TransferJob(job, keys, rows))

    def finished(self) -> list[tuple[int, set]]:
        done = []
        for result in self.tier.get_finished_jobs():
            keys = self.running[result.job_id][1]
            done.append((result.job_id, set(keys if result.success else result.successful_keys or ())))
        self.tier.on_request_finished(None)
        return done


class SglangEngine(Engine):
    layout, page_size, dtype = "page_first", 1, "bfloat16"

    class _Config:
        tp_rank, tp_size, is_mla_model, model_name = 0, 1, False, "two processes"

    def open(self, address: str) -> None:
        engines.use_sglang()
        from kvcache.memory import address_of
        from kvcache.sglang import KvCacheHiCache

        self.base = address_of(self.bytes)
        config = self._Config()
        config.extra_config = {"address": address, "interface_v1": 1}  # type: ignore[attr-defined]
        self.backend = KvCacheHiCache(config)
        self.kv_buffer = self
        self.nbytes = self.bytes.nbytes
        self.backend.register_mem_pool_host(self)
        self.done: list[tuple[int, set]] = []

    def data_ptr(self) -> int:
        return self.base

    def get_page_buffer_meta(self, indices: list[int]) -> tuple[list[int], list[int]]:
        half = self.size // 2
        places = [self.base + row * self.size + part * half for row in indices for part in (0, 1)]
        return places, [half] * len(places)

    def found(self, keys: list[bytes]) -> bool:
        return self.backend.batch_exists([key.decode() for key in keys]) == len(keys)

    def submit(self, store: bool, job: int, keys: list[bytes], rows: list[int]) -> None:
        move = self.backend.batch_set_v1 if store else self.backend.batch_get_v1
        answers = move([key.decode() for key in keys], rows)
        self.done.append((job, {key for key, answer in zip(keys, answers) if answer}))

    def finished(self) -> list[tuple[int, set]]:
        done, self.done = self.done, []
        return done


class LmcacheEngine(Engine):
    class _Key:
        model_name, kv_rank, object_group_id, cache_salt = "two processes", 0, 0, ""

        def __init__(self, name: bytes) -> None:
            self.chunk_hash = name

    class _Object:
        def __init__(self, address: int, size: int) -> None:
            self.data_ptr, self.size = address, size

        def get_size(self) -> int:
            return self.size

    def open(self, address: str) -> None:
        engines.use_lmcache()
        from kvcache.lmcache import KvCacheL2Adapter
        from kvcache.memory import address_of

        self.ptr, self.align_bytes = address_of(self.bytes), 4096
        whole, self.size = self.size, self.bytes.nbytes
        self.adapter = KvCacheL2Adapter({"address": address}, self)
        self.size = whole
        self.tasks: dict[int, int] = {}

    def found(self, keys: list[bytes]) -> bool:
        task = self.adapter.submit_lookup_and_lock_task([self._Key(key) for key in keys], None)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            answer = self.adapter.query_lookup_and_lock_result(task)
            if answer is not None:
                return all(answer.test(number) for number in range(len(keys)))
        raise AssertionError("no look-up in 30 s")

    def submit(self, store: bool, job: int, keys: list[bytes], rows: list[int]) -> None:
        names = [self._Key(key) for key in keys]
        objects: list[Any] = [self._Object(self.ptr + row * self.size, self.size) for row in rows]
        submit = self.adapter.submit_store_task if store else self.adapter.submit_load_task
        self.tasks[submit(names, objects)] = job

    def finished(self) -> list[tuple[int, set]]:
        done = []
        for task, result in self.adapter.pop_completed_store_tasks().items():
            job = self.tasks.pop(task)
            done.append((job, set(self.running[job][1]) if result.is_successful() else set()))
        for task, job in list(self.tasks.items()):
            bitmap = self.adapter.query_load_result(task)
            if bitmap is not None:
                keys = self.running[job][1]
                done.append((job, {key for number, key in enumerate(keys) if bitmap.test(number)}))
                del self.tasks[task]
                self.adapter.submit_unlock([self._Key(key) for key in keys])
        return done


_KINDS = {"vllm": VllmEngine, "sglang": SglangEngine, "lmcache": LmcacheEngine}


def main(address: str, seed: int, jobs: int, kind: str = "vllm") -> int:
    generator = random.Random(seed)
    endless = jobs > 100_000
    everyone = [_KINDS[kind](address, size) for size in _SIZES[: 1 if endless else None]]
    print("begins", flush=True)
    for job in range(jobs):
        engine = everyone[generator.randrange(len(everyone))]
        engine.begin(job, int(generator.random() ** 3 * _BLOCKS), generator)
        while len(engine.free) < 5:
            engine.collect()
            time.sleep(0)
    end = time.monotonic() + 30
    while any(engine.running for engine in everyone) and time.monotonic() < end:
        for engine in everyone:
            engine.collect()
    stuck = sum(len(engine.running) for engine in everyone)
    print(sum(engine.loaded for engine in everyone), sum(engine.wrong for engine in everyone), flush=True)
    return 1 if stuck else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:5]))
