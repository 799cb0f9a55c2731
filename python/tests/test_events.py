"""KV events of a real server, decoded as followers decode them.

The classes of ``GENERATIONS`` are our own, from tables of the engines' fields. The engines' own classes are tried where
they can be imported. Needs msgspec and pyzmq.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import tempfile
import unittest
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

from tests.serving import Server, free_ports

import kvcache

try:
    import msgspec
    import zmq
except ImportError:
    msgspec = zmq = None  # type: ignore[assignment]

_SHAPE = kvcache.BlockShape(layers=1, heads=1, dim=8, tokens=4, dtype="bf16")
_KEYS = [f"{number:064x}" for number in (11, 12, 13)]
_HASHES = [11, 12, 13]  # the low 64 bits of the keys

_Hash = Union[bytes, int]
_STORED = {
    "block_hashes": List[_Hash],
    "parent_block_hash": Optional[_Hash],
    "token_ids": List[int],
    "block_size": int,
    "lora_id": Optional[int],
}
_REMOVED = {"block_hashes": List[_Hash]}
_MEDIUM = {"medium": Optional[str]}
_NAMED = {**_MEDIUM, "lora_name": Optional[str]}


class Generation(NamedTuple):
    """Fields of a follower's classes: those without a default, and those that are None by default."""

    name: str
    encoding: str
    stored: Dict[str, Any]
    stored_optional: List[str]
    removed: Dict[str, Any]
    removed_optional: List[str]


GENERATIONS = [
    Generation("vLLM, first", "array", _STORED, [], _REMOVED, []),
    Generation("vLLM 0.11", "array", {**_STORED, **_MEDIUM}, [], {**_REMOVED, **_MEDIUM}, []),
    Generation(
        "vLLM 0.23",
        "array",
        {**_STORED, **_NAMED},
        ["extra_keys", "group_idx"],
        {**_REMOVED, **_MEDIUM},
        ["group_idx"],
    ),
    Generation("SGLang, first", "array", _STORED, [], _REMOVED, []),
    Generation("SGLang, summer of 2026", "array", _STORED, ["medium"], _REMOVED, ["medium"]),
    Generation(
        "vLLM 0.24",
        "map",
        {**_STORED, **_NAMED},
        ["extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"],
        {**_REMOVED, **_MEDIUM},
        ["group_idx"],
    ),
    Generation(
        "vLLM, autumn of 2026",
        "map",
        {**_STORED, **_NAMED},
        [
            "extra_keys",
            "group_idx",
            "kv_cache_spec_kind",
            "kv_cache_spec_sliding_window",
            "locality",
            "ownership",
            "session_id",
        ],
        {**_REMOVED, **_MEDIUM},
        ["group_idx", "locality", "ownership"],
    ),
    Generation("SGLang, autumn of 2026", "map", _STORED, ["medium", "cache_salt", "session_id"], _REMOVED, ["medium"]),
]


def batch_class(generation: Generation) -> Any:
    options = {"array_like": generation.encoding == "array", "omit_defaults": True, "gc": False}

    def event(tag: str, required: Dict[str, Any], optional: List[str]) -> Any:
        fields = [*required.items(), *((name, Any, None) for name in optional)]
        return msgspec.defstruct(tag, fields, tag=tag, **options)

    events = (
        event("BlockStored", generation.stored, generation.stored_optional),
        event("BlockRemoved", generation.removed, generation.removed_optional),
        event("AllBlocksCleared", {}, []),
    )
    fields = [("ts", float), ("events", List[Union[events]]), ("rank", Optional[int], None)]  # type: ignore[valid-type]
    return msgspec.defstruct("Batch", fields, array_like=True)


@contextlib.contextmanager
def published(encoding: str, media: str) -> Iterator[List[bytes]]:
    """The payloads that a server publishes while three blocks are stored, written to disk and deleted."""
    replay_port, publish_port = free_ports(2)
    replay = f"tcp://127.0.0.1:{replay_port}"
    settings = {
        "events.publish": f"tcp://127.0.0.1:{publish_port}",
        "events.replay": replay,
        "events.encoding": encoding,
        "events.media": media,
        "admission": "always",
    }
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        server = Server("64MiB", "--disk", f"{folder}:512MiB", *options)
        stack.callback(server.close)
        client = stack.enter_context(kvcache.connect(server.address))
        blocks = client.blocks("m", shape=_SHAPE)
        chain = blocks.chain_of_keys([bytes.fromhex(key) for key in _KEYS])
        for number in range(len(_KEYS)):
            blocks.put(chain, number, bytes([number]) * _SHAPE.block_bytes)
        context = stack.enter_context(zmq.Context())
        disk = {"vllm": b"STORAGE", "sglang": b"DISK"}[media]
        save(server.port)
        replayed(context, replay, lambda all: disk in b"".join(all))
        blocks.drop(chain)
        yield replayed(context, replay, lambda all: disk in b"".join(all).partition(b"BlockRemoved")[2])


def save(port: int) -> None:
    """Has the server write all blocks to its disk."""
    with socket.create_connection(("127.0.0.1", port), 60) as redis:
        redis.sendall(b"SAVE\r\n")
        assert redis.recv(64) == b"+OK\r\n"


def replayed(context: Any, endpoint: str, complete: Any, wanted: bytes = bytes(8)) -> List[bytes]:
    """Asks for all messages, or the ``snapshot``, until they are complete."""
    with context.socket(zmq.DEALER) as dealer:
        dealer.connect(endpoint)
        for _ in range(600):
            dealer.send_multipart([b"", wanted])
            payloads = []
            while True:
                if not dealer.poll(30_000):
                    raise AssertionError("no reply to a replay within 30 s")
                *_, sequence, payload = dealer.recv_multipart()
                if sequence == b"\xff" * 8:
                    break
                payloads.append(payload)
            if complete(payloads):
                return payloads
            dealer.poll(100)
    raise AssertionError(f"not published: {payloads}")


@unittest.skipIf(msgspec is None, "msgspec and pyzmq are not here; pip install msgspec pyzmq")
class EventsTest(unittest.TestCase):
    def assert_decoded(self, batches: List[Any], media: List[str]) -> None:
        """What was told is what was done, whichever fields the classes have."""
        events = [event for batch in batches for event in batch.events]
        present: Dict[Any, set] = {}
        stored = 0
        for event in events:
            tier = present.setdefault(getattr(event, "medium", None), set())
            self.assertEqual(getattr(event, "group_idx", 0), 0)
            self.assertEqual(getattr(event, "locality", "LOCAL"), "LOCAL")
            self.assertEqual(getattr(event, "ownership", "kvcache"), "kvcache")
            self.assertIsNone(getattr(event, "session_id", None))
            if type(event).__name__ == "BlockStored":
                self.assertEqual((event.block_size, event.lora_id, list(event.token_ids)), (4, None, []))
                first = _HASHES.index(event.block_hashes[0])
                self.assertEqual(event.block_hashes, _HASHES[first : first + len(event.block_hashes)])
                self.assertEqual(event.parent_block_hash, _HASHES[first - 1] if first else None)
                tier.update(event.block_hashes)
                stored += len(event.block_hashes)
            else:
                self.assertEqual(type(event).__name__, "BlockRemoved")
                tier.difference_update(event.block_hashes)
        self.assertEqual(stored, 2 * len(_HASHES), events)
        self.assertFalse(any(present.values()), present)
        self.assertIn(set(present), ({None}, set(media)))
        fields = type(events[0]).__struct_fields__
        self.assertEqual(set(present) == {None}, "medium" not in fields)

    def test_followers_decode_maps(self) -> None:
        self.check_generations("map", "vllm", ["CPU", "STORAGE"])

    def test_followers_decode_arrays(self) -> None:
        self.check_generations("array", "sglang", ["CPU_PINNED", "DISK"])

    def check_generations(self, encoding: str, names: str, media: List[str]) -> None:
        with published(encoding, names) as payloads:
            for generation in GENERATIONS:
                if generation.encoding == encoding:
                    with self.subTest(generation.name):
                        decoder = msgspec.msgpack.Decoder(batch_class(generation))
                        self.assert_decoded([decoder.decode(payload) for payload in payloads], media)

    def test_what_connectors_store_without_a_tenant_is_told(self) -> None:
        """Values under engines' hashes, as vLLM's tier, LMCache's adapter, SGLang's pages and Redis' clients store them."""
        replay_port, publish_port = free_ports(2)
        replay = f"tcp://127.0.0.1:{replay_port}"
        published = ("--set", f"events.publish=tcp://127.0.0.1:{publish_port}", "--set", f"events.replay={replay}")
        page = "77d735ce838418aa151bd96b5b1e78ee63860892e0a95c00fe34178442be9b07"
        with contextlib.ExitStack() as stack:
            server = Server("64MiB", *published)
            stack.callback(server.close)
            client = stack.enter_context(kvcache.connect(server.address))
            for layout, key in (
                ("vllm-tier/2 tokens=16 blocks=1", (21).to_bytes(32, "big") + bytes(4)),
                ("sglang/2 pool=kv page=64", page.encode()),
                ("lmcache/1", b"m@0@0@@" + (23).to_bytes(32, "big")),
                ("of another kind", b"a key"),
            ):
                self.assertTrue(client.namespace("m", layout=layout).put(key, b"value").stored)
            with socket.create_connection(("127.0.0.1", server.port), 60) as redis:
                redis.sendall(b"SET plain value\r\nSET vllm@m@1@0@0000000000000018 value\r\n")
                while redis.recv(64).count(b"+OK") == 0:
                    pass
            blocks = client.blocks("m", shape=_SHAPE)
            chain = blocks.chain(range(8))
            chain.set_hashes([(25).to_bytes(32, "big"), b"\x1a"])
            with self.assertRaisesRegex(ValueError, "1 hashes from 2 on; allowed: those of the 2 blocks"):
                chain.set_hashes([b"\x1b"], 2)
            for number in range(2):
                self.assertTrue(blocks.put(chain, number, bytes(_SHAPE.block_bytes)).stored)
            context = stack.enter_context(zmq.Context())
            decoder = msgspec.msgpack.Decoder(batch_class(GENERATIONS[-2]))

            def told(payloads: List[bytes]) -> List[Any]:
                return [event for payload in payloads for event in decoder.decode(payload).events]

            payloads = replayed(context, replay, lambda found: told(found)[-1:] and told(found)[-1].block_hashes[-1] == 26)
            events = [(each, event) for event in told(payloads) for each in event.block_hashes]
            self.assertEqual(
                [(each, event.block_size, event.group_idx) for each, event in events],
                [(21, 16, 0), (0x77D735CE838418AA, 64, 0), (23, 0, None), (24, 0, None), (25, 4, 0), (26, 4, 0)],
            )

    def test_vllm_decodes(self) -> None:
        self.check_engine("vllm.distributed.kv_events", "vllm", ["CPU", "STORAGE"])

    def test_sglang_decodes(self) -> None:
        self.check_engine("sglang.srt.disaggregation.kv_events", "sglang", ["CPU_PINNED", "DISK"])

    def check_engine(self, module: str, names: str, media: List[str]) -> None:
        try:
            classes = importlib.import_module(module)
        except ImportError as missing:
            self.skipTest(f"{module} cannot be imported: {missing}")
        encoding = "array" if classes.KVCacheEvent.__struct_config__.array_like else "map"
        decoder = msgspec.msgpack.Decoder(classes.KVEventBatch)
        with published(encoding, names) as payloads:
            self.assert_decoded([decoder.decode(payload) for payload in payloads], media)


if __name__ == "__main__":
    unittest.main()
