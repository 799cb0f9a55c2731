"""vLLM as it is released, on the CPU, with a server of ours. Run by ``./kvcache test --engines``.

Two engines share two cores, so one that starts is waited for beside another.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import inspect
import json
import logging
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Callable, Dict, List, Optional, Set, Tuple
from unittest import mock

import msgspec
import torch
import zmq
from engines.vllm_engine import environment, make_model
from engines.vllm_steps import SteppedEngine
from engines.vllm_tiering import Tiering
from tests import engines as doubles
from tests import test_connectors, test_gpu
from tests.faults import Faults, logged, secrets
from tests.serving import Cluster, Server, end_with_parent, free_ports, until
from tests.test_events import replayed

from kvcache import KvCacheError
from kvcache.gpu import Driver

SCALE = int(os.environ.get("KVCACHE_TEST_SCALE", "1"))
_TOKENS = 16
_START_SECONDS = 300
_BLOCK_TOKENS = 128
"""Of vLLM on the CPU."""


def prompts(seed: int, count: int = 20) -> List[List[int]]:
    """Prompts that share four beginnings of 512 tokens."""
    source = random.Random(seed)
    heads = [[source.randrange(3, 32000) for _ in range(512)] for _ in range(4)]
    return [
        heads[each % 4] + [source.randrange(3, 32000) for _ in range(source.randint(20, 200))] for each in range(count)
    ]


def blocks_of(asked: List[List[int]]) -> int:
    """The blocks of prompts that can be loaded, each counted once: the last token is always computed."""
    found = set()
    for prompt in asked:
        for end in range(_BLOCK_TOKENS, len(prompt), _BLOCK_TOKENS):
            found.add(tuple(prompt[:end]))
    return len(found)


class Engine:
    """vLLM in a process of its own."""

    def __init__(self, model: pathlib.Path, **options: Any) -> None:
        reader, writer = os.pipe()
        self.log = tempfile.NamedTemporaryFile("w+", prefix="kvcache-vllm-", suffix=".log")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engines.vllm_engine", str(model), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            pass_fds=[writer],
            env={**environment(), "ANSWERS_TO": str(writer)},
            text=True,
            preexec_fn=end_with_parent,
        )
        os.close(writer)
        self._answers = os.fdopen(reader)

    def text(self) -> str:
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def ready(self) -> "Engine":
        self.answer()
        return self

    def answer(self) -> Dict[str, Any]:
        line = self._answers.readline()
        if not line:
            self._process.wait(30)
            raise AssertionError("vLLM ended:\n" + self.text()[-6000:])
        return json.loads(line)

    def begin(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def ask(self, **order: Any) -> Dict[str, Any]:
        self.begin(**order)
        return self.answer()

    def generate(self, asked: List[List[int]], **more: Any) -> List[List[int]]:
        return self.ask(generate=asked, tokens=_TOKENS, more=more)["tokens"]

    def metric(self, name: str) -> float:
        """The sum of vLLM's counters whose names begin so."""
        return sum(value for key, value in self.ask(metrics=True)["metrics"].items() if key.startswith(name))

    def close(self) -> str:
        """Ends it and returns its log."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError("vLLM did not end within 60 s:\n" + self.text()[-6000:]) from None
        text = self.text()
        self._answers.close()
        self.log.close()
        return text


def tier(address: str, **settings: Any) -> Dict[str, Any]:
    """vLLM's configuration with our tier, by its entry point."""
    return {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {
            "spec_name": "CpuTieringSpec",
            "spec_module_path": "engines.cpu_tiering",
            "cpu_bytes_to_use": 64 << 20,
            "secondary_tiers": [{"type": "kvcache", "address": address, "enable_kv_events": True, **settings}],
        },
    }


class VllmTest(unittest.TestCase):
    """Engines with a connector of ours, beside one without any, and a server with a disk."""

    transfer: Callable[..., Dict[str, Any]]
    plain: Engine
    filling: Engine
    second: Engine

    folder: tempfile.TemporaryDirectory
    server: Server
    events: str
    engine_events: str
    expected: List[List[int]]
    _open: List[Engine]

    @classmethod
    def setUpClass(cls) -> None:
        cls._open = []
        cls.folder = tempfile.TemporaryDirectory(prefix="kvcache-vllm-")
        home = pathlib.Path(cls.folder.name)
        cls.model = home / "model"
        make_model(cls.model)
        cls.events, publish = (f"tcp://127.0.0.1:{port}" for port in free_ports(2))
        cls.engine_events = f"ipc://{home / 'replay'}"
        settings = {"admission": "always", "events.publish": publish, "events.replay": cls.events}
        options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        cls.server = Server("64MiB", "--disk", f"{home / 'disk'}:256MiB", *options)
        cls.asked = prompts(1)
        cls.later = prompts(2, 8)
        told = {"enable_kv_cache_events": True, "publisher": "zmq", "replay_endpoint": cls.engine_events}
        told["endpoint"] = f"ipc://{home / 'publish'}"
        plain, filling = cls.engine(), cls.engine(cls.transfer(cls.server.address), kv_events_config=told)
        plain.ready()
        cls.expected, cls.expected_later = plain.generate(cls.asked), plain.generate(cls.later)
        cls.filling = filling.ready()
        cls.plain = plain

    @classmethod
    def engine(cls, transfer: Optional[Dict[str, Any]] = None, **options: Any) -> Engine:
        if transfer is not None:
            options["kv_transfer_config"] = transfer
        engine = Engine(options.pop("model", cls.model), **options)
        cls._open.append(engine)
        return engine

    @classmethod
    def tearDownClass(cls) -> None:
        for engine in cls._open:
            if engine._process.poll() is None:
                engine._process.kill()
                engine._process.wait()
        cls.server.close()
        cls.folder.cleanup()

    def gets(self, result: str) -> int:
        """What our server counted of the model's blocks."""
        return self.server.meter("cache_gets_total", f'result="{result}"')

    def told(self, endpoint: str, medium: str, least: int, wanted: bytes = bytes(8)) -> Set[Any]:
        """The blocks that a publisher has told to be in a medium, decoded by vLLM's own classes."""
        from vllm.distributed.kv_events import BlockStored, KVEventBatch

        decoder = msgspec.msgpack.Decoder(KVEventBatch)
        blocks: Set[Any] = set()

        def complete(payloads: List[bytes]) -> bool:
            events = [event for payload in payloads for event in decoder.decode(payload).events]
            for each in events:
                if isinstance(each, BlockStored) and each.medium == medium:
                    blocks.update(each.block_hashes)
                    ours = endpoint == self.events or medium == "STORAGE"
                    self.assertEqual("kvcache" if ours else None, getattr(each, "ownership", "kvcache" if ours else None))
                if endpoint == self.events and isinstance(each, BlockStored):
                    self.assertEqual((_BLOCK_TOKENS, 0), (each.block_size, each.group_idx))
                    self.assertEqual("LOCAL", each.locality)
            return len(blocks) >= least

        with zmq.Context() as context:
            replayed(context, endpoint, complete, wanted)
        return blocks

    def close(self, engine: Engine) -> None:
        log = engine.close()
        for bad in ("Failed to close mmap_obj", "BufferError", "Traceback (most recent call last)"):
            mine = [line for line in log.splitlines() if bad in line and "render" not in line and "base.py" not in line]
            self.assertEqual([], mine, log[-6000:])
        self.assertIn("kvcache", log)

    def restart(self) -> None:
        """Ends the server, when what was stored is on its disk, and starts it again."""
        assert self.server.process is not None
        self.server.signal(signal.SIGTERM)
        self.server.process.wait(60)
        self.server.start()

    def await_stores(self, least: int) -> None:
        """Waits until vLLM's metrics have the stores; a step brings along what has ended before it."""

        def counted() -> bool:
            self.filling.generate([[5, 6, 7]])
            return self.filling.metric('vllm:kvcache_stores{"result": "copied"}') >= least

        until(counted, "the stores in vLLM's metrics")

    def server_is_killed(self) -> None:
        self.server.kill()
        self.assertEqual(self.expected_later, self.second.generate(self.later))
        self.server.start()
        self.assertEqual({"reset": True}, self.second.ask(reset=False))
        self.assertEqual(self.expected_later, self.second.generate(self.later))
        self.assertEqual({"reset": True}, self.filling.ask(reset=False))
        self.assertEqual(self.expected, self.filling.generate(self.asked))

    def reset_forgets(self) -> None:
        self.assertEqual({"reset": True}, self.second.ask(reset=True))
        before = self.second.metric("vllm:external_prefix_cache_hits")
        self.assertEqual(self.expected, self.second.generate(self.asked))
        self.assertEqual(before, self.second.metric("vllm:external_prefix_cache_hits"))


class TierTest(VllmTest):
    """The secondary tier: token-equal in every way that a block can come back, or not."""

    transfer = staticmethod(tier)

    def test_1_engines_that_follow_each_other_find_the_same_tokens(self) -> None:
        self.assertEqual(20, len(set(map(tuple, self.expected))), "the answers tell prompts apart")
        self.assertEqual(self.expected, self.filling.generate(self.asked))
        self.assertEqual(0, self.filling.metric("vllm:external_prefix_cache_hits"))
        stored = self.told(self.events, "CPU", blocks_of(self.asked))
        self.assertLessEqual(stored, self.told(self.engine_events, "GPU", len(stored)))
        self.filling.generate([[5, 6, 7]])  # vLLM publishes what its tiers have stored in its next step
        of_tier = self.told(self.engine_events, "STORAGE", 1)
        self.assertLessEqual(of_tier, stored)
        self.restart()
        self.assertEqual(stored, self.told(self.events, "STORAGE", len(stored), b"snapshot"))
        second = self.engine(tier(self.server.address)).ready()
        before = self.gets("hit")
        hints = {"kvcache": {"kind": "agent", "session": "told by kv_transfer_params", "turn": 1}}
        self.assertEqual(self.expected, second.generate(self.asked, kv_transfer_params=hints))
        until(lambda: self.server.meter("kv_hints_sessions") == 1, "the session")
        wanted = blocks_of(self.asked)
        self.assertEqual(wanted, second.metric('vllm:kvcache_loads{"result": "copied"}'))
        self.await_stores(wanted)
        self.assertEqual(1, second.metric("vllm:kvcache_connected"))
        self.assertEqual(wanted * _BLOCK_TOKENS, second.metric("vllm:external_prefix_cache_hits"))
        self.assertEqual(wanted, second.metric('vllm:kv_offload_tiering_chunk_hits{"tier": "1:kvcache"}'))
        self.assertEqual(wanted, self.gets("hit") - before)
        type(self).second = second

    def test_2_a_server_that_is_killed_costs_hits_alone(self) -> None:
        self.server_is_killed()

    def test_3_two_engines_at_once(self) -> None:
        for engine in (self.filling, self.second):
            self.assertEqual({"reset": True}, engine.ask(reset=True))
        both = prompts(3)
        self.assertEqual({"reset": True}, self.plain.ask(reset=False))
        expected = self.plain.generate(both)
        for engine in (self.filling, self.second):
            engine.begin(generate=both, tokens=_TOKENS)
        for engine in (self.filling, self.second):
            self.assertEqual(expected, engine.answer()["tokens"])

    def test_4_a_reset_forgets_what_is_stored(self) -> None:
        self.reset_forgets()
        self.close(self.filling)
        self.close(self.second)

    def test_5_another_model_finds_nothing(self) -> None:
        other = pathlib.Path(self.folder.name) / "other"
        make_model(other)
        engine = self.engine(tier(self.server.address), model=other).ready()
        self.assertEqual(self.expected, engine.generate(self.asked))
        self.assertEqual(0, engine.metric("vllm:external_prefix_cache_hits"))
        self.close(engine)


def cpu(address: str, **changes: Any) -> Dict[str, Any]:
    """vLLM's configuration with our connector for the CPU, by its entry point."""
    return {
        "kv_connector": "KvCacheCpuConnector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"address": address},
        **changes,
    }


class CpuTest(VllmTest):
    """The connector for the CPU: one that fills, one that follows, prefill and decode apart."""

    transfer = staticmethod(cpu)

    def test_1_engines_that_follow_each_other_find_the_same_tokens(self) -> None:
        self.assertEqual(self.expected, self.filling.generate(self.asked))
        stored = self.told(self.events, "CPU", blocks_of(self.asked))
        self.assertLessEqual(stored, self.told(self.engine_events, "GPU", len(stored)))
        self.restart()
        second = self.engine(cpu(self.server.address)).ready()
        self.assertEqual(self.expected, second.generate(self.asked))
        wanted = blocks_of(self.asked)
        self.assertEqual(wanted * _BLOCK_TOKENS, second.metric("vllm:external_prefix_cache_hits"))
        self.assertEqual(wanted, second.metric('vllm:kvcache_loads{"result": "copied"}'))
        self.await_stores(wanted)
        self.assertEqual(1, second.metric("vllm:kvcache_connected"))
        if importlib.util.find_spec("vllm.v1.metrics.cache_hit_source"):
            by_source = "vllm:prompt_tokens_cached_by_source"
            here = sum(second.metric(f'{by_source}{{"source": "{each}"}}') for each in ("host", "disk"))
            self.assertEqual(wanted * _BLOCK_TOKENS, here)
        type(self).second = second

    def test_2_a_server_that_is_killed_costs_hits_alone(self) -> None:
        self.server_is_killed()

    def test_3_a_reset_forgets_what_is_stored(self) -> None:
        self.reset_forgets()
        self.close(self.filling)
        self.close(self.second)

    def test_4_prefill_and_decode_in_two_processes_over_a_cluster(self) -> None:
        asked = prompts(5)
        self.assertEqual({"reset": True}, self.plain.ask(reset=False))
        expected = self.plain.generate(asked)
        cluster = Cluster()
        self.addCleanup(cluster.close)
        prefill = self.engine(cpu(cluster.address, kv_role="kv_producer"))
        decode = self.engine(cpu(cluster.address, kv_role="kv_consumer"))
        prefill.ready()

        def filled() -> bool:
            """Asks prefill again where a store was skipped, as one is when the server has no time for it."""
            self.assertEqual({"reset": True}, prefill.ask(reset=False))
            prefill.ask(generate=asked, tokens=1)
            return sum(node.meter("cache_puts_total", 'outcome="reserved"') for node in cluster.nodes) >= blocks_of(asked)

        until(filled, "all blocks at the servers")
        self.assertEqual(expected, decode.ready().generate(asked))
        self.assertEqual(blocks_of(asked) * _BLOCK_TOKENS, decode.metric("vllm:external_prefix_cache_hits"))
        self.assertEqual(0, prefill.metric("vllm:external_prefix_cache_hits"))
        cluster.nodes[1].kill()
        for engine in (prefill, decode):
            self.assertEqual({"reset": True}, engine.ask(reset=False))
            self.assertEqual(expected, engine.generate(asked))
        self.close(prefill)
        self.close(decode)


class TierAloneTest(test_connectors.VllmTest):
    """The tests of the tier that need no engine, with vLLM's own classes in place of the doubles."""


class ManyBlocksTest(test_connectors.TwoProcessesTest):
    """Random blocks from two processes, with evictions; KVCACHE_TEST_SCALE=7 moves 10,000."""

    test_sglang = test_lmcache = None  # type: ignore[assignment]


class PlayedTest(unittest.TestCase):
    """Connectors with vLLM's own classes around them, and a model that is played."""

    server: Server
    host_bytes = "32MiB"
    options: Tuple[str, ...] = ("--set", "admission=always")

    @classmethod
    def setUpClass(cls) -> None:
        cls._stack = contextlib.ExitStack()
        try:
            folder = cls._stack.enter_context(tempfile.TemporaryDirectory(prefix="kvcache-vllm-"))
            cls.model = pathlib.Path(folder) / "model"
            make_model(cls.model)
            cls.secret, cls.wrong = cls._stack.enter_context(secrets())
            more = ("--set", f"transport.secret_file={cls.secret}")
            cls.server = cls._stack.enter_context(contextlib.closing(Server(cls.host_bytes, *cls.options, *more)))
        except BaseException:
            cls._stack.close()
            raise

    @classmethod
    def tearDownClass(cls) -> None:
        cls._stack.close()

    def engine(self, **changes: Any) -> SteppedEngine:
        """One with the connector for the CPU."""
        settings = {"timeout": 0.5, "wait": 0.5, "secret_file": self.secret, **changes}
        transfer = cpu(self.server.address)
        transfer["kv_connector_extra_config"].update(settings)
        engine = SteppedEngine(self.model, transfer)
        self.addCleanup(engine.close)
        return engine

    def tiering(self, **changes: Any) -> Tiering:
        settings = {"timeout": 0.5, "secret_file": self.secret, "address": self.server.address, **changes}
        tiering = Tiering(self.id(), **settings)
        self.addCleanup(tiering.close)
        return tiering


def copied(of: Any) -> int:
    """Blocks that were loaded, by what vLLM's metrics were told."""
    return int(sum(value for name, value in of.counts.items() if "kvcache_loads" in name and "copied" in name))


def moved(of: Any) -> Dict[str, int]:
    """What vLLM's metrics were told of blocks that were to be moved, by result."""
    counts = sorted(of.counts.items())
    return {name.rpartition("kvcache_")[2]: int(value) for name, value in counts if "kvcache_" in name}


class FaultsTest(PlayedTest):
    """Random faults: nothing is raised into vLLM, no byte is wrong, and nothing stays pending.

    KVCACHE_TEST_SCALE=10 has 1,000 of each.
    """

    def tell(self, faults: Faults, engines: List[Any], stranger: Any, logs: List[logging.LogRecord]) -> None:
        counts = [moved(each) for each in (*engines, stranger)]
        print(f"{self.id().rpartition('.')[2]}, {faults.told()}: {counts}", flush=True)
        self.assertEqual([0] * 3, [each.wrong for each in (*engines, stranger)], "wrong blocks")
        self.assertEqual(0, copied(stranger))
        self.assertGreater(sum(map(copied, engines)), SCALE * 50)
        self.assertLess(len(logs), faults.total() // 2)

    def test_the_tier(self) -> None:
        engines = [self.tiering(), self.tiering()]
        stranger = self.tiering(secret_file=self.wrong)
        faults = Faults(self.server, seed=11)
        chosen = faults.chosen

        def work(kind: str) -> None:
            each = stranger if kind == "password" else chosen.choice(engines)
            for _ in range(3):
                start = int(chosen.random() ** 2 * 300)
                keys = [test_connectors.key(number) for number in range(start, start + (28 if kind == "full" else 6))]
                if kind == "key":
                    keys.insert(chosen.randrange(6), b"k" * 5000)
                each.request(keys)
            if kind in ("killed", "stopped") and chosen.random() < 0.2:
                each.manager.reset_cache()

        with logged("kvcache") as logs:
            faults.run(100 * SCALE, work, lambda: all(each.connected() for each in engines))
            for each in (*engines, stranger):
                until(each.is_idle, "the end of all jobs", 10)
        self.tell(faults, engines, stranger, logs)

    def test_the_connector_for_the_cpu(self) -> None:
        engines = [self.engine(), self.engine()]
        stranger = self.engine(secret_file=self.wrong)
        faults = Faults(self.server, seed=12)
        chosen = faults.chosen

        def work(kind: str) -> None:
            each = stranger if kind == "password" else chosen.choice(engines)
            blocks = 28 if kind == "full" else 9
            asked = [prompt(int(chosen.random() ** 2 * 60), blocks) for _ in range(chosen.randint(1, 3))]
            if kind == "key":
                asked[0][chosen.randrange(16)] = chosen.choice((-1, 1 << 40))
            each.run(asked)
            if kind in ("killed", "stopped") and chosen.random() < 0.2:
                each.connector.reset_cache()

        with logged("kvcache") as logs:
            faults.run(100 * SCALE, work, lambda: all(each.connected() for each in engines))
        self.tell(faults, engines, stranger, logs)


class FailedLoadTest(PlayedTest):
    def test_what_is_computed_upon_a_failed_load_is_not_stored(self) -> None:
        first, second, third = (self.engine(timeout=10) for _ in range(3))
        first.run([prompt(1, 9)])
        until(lambda: (first.step(), moved(first).get("stores copied"))[1] == 9, "the stores")
        with mock.patch.object(second.worker._worker._blocks, "_leased", side_effect=KvCacheError("late")):
            second.run([prompt(1, 12), prompt(1, 14)])
        self.assertEqual(9, moved(second)["loads failed"])
        third.run([prompt(1, 14)])
        self.assertEqual(0, third.wrong)
        until(lambda: (second.step(), moved(second).get("stores copied"))[1] == 5, "what was computed again")
        first.run([prompt(1, 14)])
        self.assertEqual((14 - 9, 0), (copied(first), first.wrong))


class ManyCpuBlocksTest(PlayedTest):
    """Random blocks from two engines, one of which sends its own, with evictions; KVCACHE_TEST_SCALE=7 moves 10,000."""

    def test_the_connector_for_the_cpu(self) -> None:
        engines = [self.engine(timeout=10)]
        with mock.patch("kvcache.client.try_open", return_value=None):
            engines.append(self.engine(timeout=10))
        chosen = random.Random(13)

        def blocks() -> int:
            return sum(sum(moved(each).values()) for each in engines)

        while blocks() < 1430 * SCALE:
            asked = [prompt(int(chosen.random() ** 2 * 90), chosen.randint(1, 20)) for _ in range(3)]
            chosen.choice(engines).run(asked)
        self.assertEqual([0, 0], [each.wrong for each in engines])
        for each in engines:
            self.assertGreater(copied(each), SCALE * 20)
        stored = sum(moved(each)["stores copied"] for each in engines)
        if SCALE >= 7:
            self.assertGreater(stored, 90 * 20, "what was evicted is stored again")
        counts = [moved(each) for each in engines]
        print(f"{blocks()} blocks, {sum(map(copied, engines))} loaded, 0 wrong: {counts}", flush=True)


_CUDA = os.environ.get("KVCACHE_TEST_CUDA") or str(
    pathlib.Path(__file__).resolve().parents[2] / "gpu-bridge" / "target" / "stand-in" / "libcuda.so.1"
)


@unittest.skipUnless(os.path.exists(_CUDA), "no stand-in for the driver of a GPU: the tests of gpu-bridge build it")
class GpuTest(PlayedTest):
    """The connector for GPUs, made by vLLM's factory for vLLM's scheduler and for a worker.

    The driver is the stand-in, whose memory is this process's own. A CPU build of vLLM has no worker for GPUs, so its
    model runner, streams and graphs are not tried.
    """

    options = ("--gpu", "0", "--set", "admission=always")

    @classmethod
    def setUpClass(cls) -> None:
        with mock.patch.dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(_CUDA)):
            super().setUpClass()

    def gpu(self, **changes: Any) -> SteppedEngine:
        device = test_gpu.Memory(Driver(0, _CUDA), 16 << 20)
        taken = [0]

        def memory(blocks: int, page: int) -> torch.Tensor:
            at, size = device.address + taken[0], blocks * page
            taken[0] += size
            return torch.frombuffer((ctypes.c_int8 * size).from_address(at), dtype=torch.int8).view(blocks, page)

        settings = {"address": self.server.address, "secret_file": self.secret, "cuda_library": _CUDA, "timeout": 5}
        transfer = {**cpu(""), "kv_connector": "KvCacheConnector", "kv_connector_extra_config": {**settings, **changes}}
        with mock.patch("kvcache.vllm_gpu._current_stream", lambda: device.handle):
            engine = SteppedEngine(self.model, transfer, memory=memory, finish=device.finish)
        self.addCleanup(engine.close)
        return engine

    def test_an_engine_loads_what_another_has_stored_and_goes_on_without_the_server(self) -> None:
        asked = [prompt(seed, 9) for seed in range(8)]
        for layers in (False, True):
            first, second = self.gpu(layers=layers), self.gpu(layers=layers)
            first.run(asked[:4])
            until(lambda first=first: (first.step(), moved(first).get("stores copied"))[1] == 36, "the stores")
            second.run(asked)
            self.assertEqual(36, copied(second))
            self.assertEqual(36 * 16, second.hits)
            self.assertEqual(0, first.wrong + second.wrong)
            self.assertEqual(1, second.counts["kvcache_connected"])
            self.assertTrue(second.connector.reset_cache())
        self.server.kill()
        second.run(asked)
        self.assertEqual(0, second.wrong)
        self.assertEqual(0, second.counts["kvcache_connected"])


def prompt(seed: int, blocks: int) -> List[int]:
    """Tokens that begin as those of other lengths do."""
    source = random.Random(seed)
    return [source.randrange(3, 30000) for _ in range(16 * blocks + 5)]


class InterfaceTest(unittest.TestCase):
    """The doubles of the unit tests are what this vLLM has."""

    def test_the_double_of_the_tier_is_what_vllm_has(self) -> None:
        from vllm.v1.kv_offload.tiering import base

        real = base.SecondaryTierManager
        for name in ("lookup", "submit_store", "submit_load", "get_finished_jobs", "on_new_request", "drain_jobs"):
            double = inspect.signature(getattr(doubles.SecondaryTierManager, name))
            self.assertEqual(list(double.parameters), list(inspect.signature(getattr(real, name)).parameters), name)
        needed = {name for name, member in vars(real).items() if getattr(member, "__isabstractmethod__", False)}
        self.assertEqual(
            needed,
            {
                name
                for name, member in vars(doubles.SecondaryTierManager).items()
                if getattr(member, "__isabstractmethod__", False)
            },
        )
        for mine, theirs in ((doubles.TransferJob, base.TransferJob), (doubles.JobResult, base.JobResult)):
            known = {"submit_time", "block_ids"}  # set by vLLM; the name of chunk_ids to 0.29
            self.assertLessEqual(set(self.fields(theirs)) - known, set(self.fields(mine)), theirs)

    def test_the_connectors_are_what_vllm_asks_for(self) -> None:
        from vllm.distributed.kv_transfer.kv_connector.v1 import base

        from kvcache.vllm_cpu import KvCacheCpuConnector
        from kvcache.vllm_gpu import KvCacheConnector

        for kind in (KvCacheCpuConnector, KvCacheConnector):
            self.assertFalse(inspect.isabstract(kind), kind)
            self.assertTrue(base.supports_hma(kind), kind)
            for name, member in inspect.getmembers(kind, inspect.isfunction):
                theirs = getattr(base.KVConnectorBase_V1, name, None) or getattr(base.SupportsHMA, name, None)
                if theirs is not None and not name.startswith("_"):
                    wanted = list(inspect.signature(theirs).parameters)
                    self.assertEqual(wanted, list(inspect.signature(member).parameters), f"{kind.__name__}.{name}")

    @staticmethod
    def fields(kind: Any) -> List[str]:
        return list(kind.__dataclass_fields__)


if __name__ == "__main__":
    unittest.main()
