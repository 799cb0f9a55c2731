"""The adapter inside LMCache as it is released, without a GPU, against real servers.

Run with the Python of a version's environment, in the folder ``python``::

    ~/.cache/kvcache/engines/lmcache-0.5.6/bin/python -m unittest -v engines.test_lmcache
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import mmap
import tempfile
import unittest
from typing import Any, List, Optional
from unittest import mock

import torch
from lmcache.cli.commands.bench.l2_adapter_bench import command, runner
from lmcache.cli.commands.bench.l2_adapter_bench.data import create_l1_memory_desc, make_memory_objects
from lmcache.v1.distributed.api import ObjectKey
from lmcache.v1.distributed.l2_adapters import create_l2_adapter
from lmcache.v1.distributed.l2_adapters.config import parse_args_to_l2_adapters_config
from tests import engines
from tests.serving import ServedTest

from kvcache import lmcache_compat
from kvcache.lmcache import KvCacheL2Adapter

KIB, MIB = 1 << 10, 1 << 20


def plugin(address: str, **params: Any) -> dict:
    """What docs/engines.md says to give LMCache."""
    return {
        "type": "plugin",
        "module_path": "kvcache.lmcache",
        "class_name": "KvCacheL2Adapter",
        "adapter_params": {"address": address, **params},
    }


def create(specification: dict, buffer: torch.Tensor) -> Any:
    """Has LMCache make an adapter, as its server does."""
    config = parse_args_to_l2_adapters_config(argparse.Namespace(l2_adapter=[json.dumps(specification)]))
    return create_l2_adapter(config.adapters[0], l1_memory_desc=create_l1_memory_desc(buffer, align_bytes=4096))


class L1:
    """LMCache's memory: private by default, a file in ``/dev/shm`` with ``--no-l1-use-lazy --shm-name NAME``."""

    def __init__(self, size: int, mapped: bool) -> None:
        self.file: Optional[Any] = None
        if mapped:
            self.file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="kvcache-test-l1-")
            self.file.truncate(size)
            self.tensor = torch.frombuffer(mmap.mmap(self.file.fileno(), size), dtype=torch.uint8)
        else:
            self.tensor = torch.zeros(size, dtype=torch.uint8)

    def objects(self, count: int, size: int, offset: int = 0, fill: int = 0) -> List[Any]:
        return make_memory_objects(self.tensor, count, size, offset, fill_offset=fill)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def keys(count: int, first: int = 0, model: str = "bench-model", salt: str = "") -> List[ObjectKey]:
    return [
        ObjectKey(chunk_hash=number.to_bytes(16, "big"), model_name=model, kv_rank=1 << 24, cache_salt=salt)
        for number in range(first, first + count)
    ]


class LmcacheTest(ServedTest):
    host_bytes = "512MiB"

    def memory(self, size: int, mapped: bool = True) -> L1:
        memory = L1(size, mapped)
        self.addCleanup(memory.close)
        return memory

    def adapter(self, memory: L1, address: str = "", **params: Any) -> Any:
        adapter = create(plugin(address or self.server.address, **params), memory.tensor)
        self.assertIsInstance(adapter, KvCacheL2Adapter)
        self.addCleanup(lambda: adapter._closed or adapter.close())
        return adapter

    def store(self, adapter: Any, names: List[ObjectKey], objects: List[Any]) -> Any:
        task = adapter.submit_store_task(names, objects)
        return runner._wait_store_finished(adapter, [task], 60)[task]

    def look_up(self, adapter: Any, names: List[ObjectKey]) -> List[bool]:
        task = adapter.submit_lookup_and_lock_task(names, {})
        bitmap = runner._wait_lookup_finished(adapter, [task], 60)[task]
        return [bitmap.test(number) for number in range(len(names))]

    def load(self, adapter: Any, names: List[ObjectKey], objects: List[Any]) -> List[bool]:
        task = adapter.submit_load_task(names, objects)
        bitmap = runner._wait_load_finished(adapter, [task], 60)[task]
        return [bitmap.test(number) for number in range(len(names))]


class BenchTest(LmcacheTest):
    """``lmcache bench l2``, its own functions, every byte compared."""

    def bench(self, mapped: bool, size: int, count: int, in_flight: int) -> None:
        rounds, each = 2, count * size
        memory = self.memory(2 * in_flight * each, mapped)
        stored = [memory.objects(count, size, flight * each, flight) for flight in range(in_flight)]
        loaded = [memory.objects(count, size, (in_flight + flight) * each, 128) for flight in range(in_flight)]
        adapter = self.adapter(memory)

        def names(number: int) -> List[List[ObjectKey]]:
            first = number * in_flight * count
            return [keys(count, first + flight * count, self.id()) for flight in range(in_flight)]

        def quiet(_: str) -> None:
            pass

        store = runner.bench_store(adapter, in_flight, count, size, rounds, names, lambda _: stored, quiet)
        found = runner.bench_lookup(adapter, in_flight, count, rounds, names, quiet)
        load = runner.bench_load(adapter, in_flight, count, size, rounds, names, lambda _: loaded, quiet)
        for result in (store, found, load):
            self.assertEqual(result.success_counts, [in_flight * count] * rounds, result.operation)
        for ours, theirs in zip(sum(stored, []), sum(loaded, [])):
            self.assertTrue(torch.equal(ours.raw_data, theirs.raw_data))

    def test_small_objects_are_mapped(self) -> None:
        self.bench(True, 256 * KIB, 32, 3)

    def test_small_objects_are_sent(self) -> None:
        self.bench(False, 256 * KIB, 32, 3)

    def test_large_objects_are_mapped(self) -> None:
        self.bench(True, 8 * MIB, 4, 3)

    def test_large_objects_are_sent(self) -> None:
        self.bench(False, 8 * MIB, 4, 3)

    def test_its_command_verifies(self) -> None:
        parser = argparse.ArgumentParser()
        command.add_l2_arguments(parser)
        words = ["--no-skip-verify", "--num-keys", "8", "--l2-adapter", json.dumps(plugin(self.server.address))]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            command.run_l2_adapter_bench(mock.MagicMock(), parser.parse_args(words))
        self.assertIn("All 8 keys data verified OK", out.getvalue())


class VersionTest(unittest.TestCase):
    def test_this_version_is_one_of_those_that_were_tested(self) -> None:
        with self.assertNoLogs("kvcache.lmcache_compat"):
            lmcache_compat.check_version()

    def test_other_versions_are_warned_about(self) -> None:
        for other in ("0.5.2", "0.6.0", "1.0"):
            with mock.patch("importlib.metadata.version", return_value=other):
                with self.assertLogs("kvcache.lmcache_compat", "WARNING") as logs:
                    lmcache_compat.check_version()
            self.assertIn(f"LMCache is {other}; kvcache.lmcache was tested with 0.5.3 to 0.5.6", logs.output[0])


class DoublesTest(unittest.TestCase):
    """What stands in for LMCache where it is not installed takes and asks for the same."""

    def test_methods_have_the_parameters_of_the_real_ones(self) -> None:
        pairs = [
            (engines.L2AdapterInterface, lmcache_compat.L2AdapterInterface),
            (engines.L2StoreResult, lmcache_compat.L2StoreResult),
        ]
        for double, real in pairs:
            for name, method in vars(double).items():
                if inspect.isfunction(method) and name != "__new__":
                    theirs = inspect.signature(getattr(real, name)).parameters
                    self.assertEqual(list(inspect.signature(method).parameters), list(theirs), f"{real}.{name}")
        self.assertEqual(
            engines.L2AdapterInterface.__abstractmethods__, lmcache_compat.L2AdapterInterface.__abstractmethods__
        )
        bits = lmcache_compat.Bitmap(2)
        bits.set(1)
        self.assertEqual([bits.test(0), bits.test(1)], [False, True])

    def test_the_adapter_takes_what_the_real_methods_take(self) -> None:
        for name, theirs in inspect.getmembers(lmcache_compat.L2AdapterInterface, inspect.isfunction):
            if name in vars(KvCacheL2Adapter) and name != "__init__":
                ours = inspect.signature(getattr(KvCacheL2Adapter, name))
                self.assertEqual(list(ours.parameters), list(inspect.signature(theirs).parameters), name)


if __name__ == "__main__":
    unittest.main()
