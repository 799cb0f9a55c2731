"""vLLM as it is released, on the CPU, with a server of ours. Run by ``./kvcache test --engines``.

Two engines share two cores, so one that starts is waited for beside another.
"""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from typing import Any, Callable, Dict, List, Optional, Set

import msgspec
import zmq
from engines.vllm_engine import environment, make_model
from tests import engines as doubles
from tests import test_connectors
from tests.serving import Server, end_with_parent, free_ports
from tests.test_events import replayed

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

    def generate(self, asked: List[List[int]]) -> List[List[int]]:
        return self.ask(generate=asked, tokens=_TOKENS)["tokens"]

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
        url = f"http://127.0.0.1:{self.server.port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as reply:
            text = reply.read().decode()
        found = re.findall(r'^cache_gets_total\{.*result="%s".*\} ([0-9.e+]+)$' % result, text, re.MULTILINE)
        return int(sum(float(each) for each in found))

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
        of_tier = self.told(self.engine_events, "STORAGE", 1)
        self.assertLessEqual(of_tier, stored)
        self.restart()
        self.assertEqual(stored, self.told(self.events, "STORAGE", len(stored), b"snapshot"))
        second = self.engine(tier(self.server.address)).ready()
        before = self.gets("hit")
        self.assertEqual(self.expected, second.generate(self.asked))
        wanted = blocks_of(self.asked)
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
        self.assertEqual(blocks_of(self.asked) * _BLOCK_TOKENS, second.metric("vllm:external_prefix_cache_hits"))
        type(self).second = second

    def test_2_a_server_that_is_killed_costs_hits_alone(self) -> None:
        self.server_is_killed()

    def test_3_a_reset_forgets_what_is_stored(self) -> None:
        self.reset_forgets()
        self.close(self.filling)
        self.close(self.second)

    def test_4_prefill_and_decode_in_two_processes(self) -> None:
        asked = prompts(5)
        self.assertEqual({"reset": True}, self.plain.ask(reset=False))
        expected = self.plain.generate(asked)
        prefill = self.engine(cpu(self.server.address, kv_role="kv_producer"))
        decode = self.engine(cpu(self.server.address, kv_role="kv_consumer"))
        prefill.ready().ask(generate=asked, tokens=1)
        self.assertEqual(expected, decode.ready().generate(asked))
        self.assertEqual(blocks_of(asked) * _BLOCK_TOKENS, decode.metric("vllm:external_prefix_cache_hits"))
        self.assertEqual(0, prefill.metric("vllm:external_prefix_cache_hits"))
        self.close(prefill)
        self.close(decode)


class TierAloneTest(test_connectors.VllmTest):
    """The tests of the tier that need no engine, with vLLM's own classes in place of the doubles."""


class ManyBlocksTest(test_connectors.TwoProcessesTest):
    """Random blocks from two processes, with evictions; KVCACHE_TEST_SCALE=7 moves 10,000."""

    test_sglang = test_lmcache = None  # type: ignore[assignment]


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
