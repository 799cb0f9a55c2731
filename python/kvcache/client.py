"""A client of one server: namespaces, values, regions and jobs."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import operator
import os
import secrets
import select
import ssl
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Callable, Dict, List, Optional, Tuple, TypeVar, Union

from kvcache import wire
from kvcache.blocks import Blocks, BlockShape, ChainSlots, namespace_digest
from kvcache.connection import Connection, Reply
from kvcache.errors import ConnectionLost, KvCacheError, Rejected, Status
from kvcache.memory import address_of, locate
from kvcache.shared import SharedIndex, Stage, open_file, try_open
from kvcache.wire import Result

Span = Tuple[int, int]
"""Offset and size of a piece of a region, in bytes."""

_KEY_TAG = b"kvcache object v1\0"
_STAGE_BYTES = 64 << 20
_STAGE_FROM = 64 << 10
_STAGE_HEADER = 4096
_MOST_BYTES = 1 << 62
_GRACE_SECONDS = 1.0
"""How much later than the server stops copying a job fails here."""

_U32 = struct.Struct("<I")
_ITEM = struct.Struct("<II")
_SPAN = struct.Struct("<QQ")
_LISTED = struct.Struct("<16sQ")
_MOST_LISTED = 131_072
_STATS_BYTES = 176
_NAMESPACE_STATS = struct.Struct("<II8Q")
DIGEST_BYTES = 16
"""Of a key's digest, which name a value in the shared index and in messages."""

_MOST_PIN_SECONDS = 3600
_EXPECT, _PIN, _FORGET, _LABEL = 0, 1, 2, 3
_KINDS = {"other": 0, "chat": 1, "agent": 2, "batch": 3}
_FIELDS = ("model", "revision", "dtype", "layout", "adapter", "tenant", "salt")
"""Of a namespace, in their order."""

_MOST_FIELD_BYTES = 512
_MOST_PROGRAM_BYTES = 200

_Self = TypeVar("_Self")


def host_and_port(address: str) -> Tuple[str, int]:
    """Splits an address. An IPv6 address with a port is in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]") or (":" in host and not host.endswith("]")):
        host, port = address, str(wire.DEFAULT_PORT)
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    digits = port.isascii() and port.isdigit()
    other = "://" in address or bare.isdigit() or any(each in bare for each in "[]/;, ")
    if not bare or other or not digits or not 1 <= int(port) <= 65535:
        raise ValueError(
            f"address = {address!r}; allowed: host or host:port without a scheme, [host]:port for IPv6, the port from 1 to"
            f" 65535 ({wire.DEFAULT_PORT} by default)"
        )
    return bare, int(port)


def new_mark() -> bytes:
    """Returns the mark of a drop."""
    return struct.pack("<QQ", time.time_ns() // 1_000_000, secrets.randbits(63) | 1)


def check_callback(name: str, callback: object) -> None:
    if not callable(callback):
        raise TypeError(f"{name} is {type(callback).__name__}; allowed: a function")


def _check_types(values: Sequence[Tuple[bytes, Sequence[Span]]]) -> None:
    """Names the first value of a job that has parts of another type. Called only where packing them has failed."""
    for at, value in enumerate(values):
        try:
            key, spans = value
        except (TypeError, ValueError):
            raise TypeError(f"values[{at}] = {value!r:.100}; allowed: (key, spans)") from None
        wire.key(key)
        try:
            for offset, size in spans:
                operator.index(offset)
                operator.index(size)
        except (TypeError, ValueError):
            allowed = "a list of (offset, size), integers from 0 to 2^62"
            raise TypeError(f"the spans of values[{at}] = {spans!r:.100}; allowed: {allowed}") from None


class Job:
    """Values on their way between a region and the server.

    ``done`` becomes true in a call of ``Client.poll``, or of any call that waits. The region's rows belong to the
    server until then, whatever happens to the connection.
    """

    def __init__(self, count: int, on_done: Optional[Callable[[Job], None]]) -> None:
        self.done = False
        """Whether it has ended, well or not."""
        self.results: List[Result] = []
        """What became of each value, in order; empty if there is an error."""
        self.error: Optional[KvCacheError] = None
        """Why nothing is known of the values: each may have been copied or not."""
        self._connection: Optional[Connection] = None
        self._count = count
        self._reply: Optional[Reply] = None
        self._callback = on_done

    def __repr__(self) -> str:
        if not self.done:
            return f"<Job of {self._count} values, on its way>"
        return f"<Job of {self._count} values, {self.error if self.error is not None else 'done'}>"

    def _finish(self, reply: Optional[Reply], error: Optional[KvCacheError]) -> None:
        if reply is not None:
            try:
                self.results = wire.copy_results(reply.value())
            except KvCacheError as failed:
                error = failed
            except LookupError:
                error = KvCacheError("the server answered a result that this client does not know")
        if error is None and len(self.results) != self._count:
            error = KvCacheError(f"the server answered {len(self.results)} results for {self._count} values")
        self.error = error
        self.done = True
        if self._callback is not None:
            self._callback(self)


class Region:
    """Memory of this process that the server copies from and to; see ``Client.region``."""

    def __init__(self, client: Client, path: str, address: Optional[int] = None) -> None:
        self._client = client
        self._address = address
        self.path = path
        """By which the server maps it."""
        self.size = 0
        """Its bytes; 0 until the server has mapped it."""
        self.error: Optional[KvCacheError] = None
        """Why the server does not map it; None before the first connection, and when it does."""
        self._number = 0

    def __repr__(self) -> str:
        state = f"not mapped: {self.error}" if self.error is not None else f"{self.size} bytes"
        return f"<Region {self.path}, {state if self._number or self.error is not None else 'not registered yet'}>"

    def _register(self, connection: Connection, index: Optional[SharedIndex], timeout: float) -> None:
        self._number = 0
        if index is None:
            self.error = KvCacheError(
                "the server shares no memory with this process: it is on another host, runs as"
                " another user, or does not (transport.shared_memory)"
            )
            return
        try:
            reply = self._request(connection, index, timeout)
        except Rejected as refused:
            self.error = refused
            return
        self._number, self.size = struct.unpack_from("<I4xQ", reply)
        self.error = None

    def _request(self, connection: Connection, index: SharedIndex, timeout: float) -> bytes:
        """The file may have been unlinked since: then a descriptor of this process names it."""
        try:
            return connection.request(wire.REGION, index.proof + bytes(8) + wire.text(self.path), timeout)
        except Rejected:
            found = None if self._address is None else locate(self._address)
            if found is None or found.path == self.path:
                raise
            self.path = found.path
            return self._request(connection, index, timeout)

    def close(self) -> None:
        """Takes the memory back: no copy begins after this."""
        self._client._drop_region(self)


class Namespace:
    """Values of one model: keys of equal namespaces share, all others are apart."""

    def __init__(self, client: Client, fields: Tuple[str, ...], shape: Optional[BlockShape] = None) -> None:
        self._client = client
        self.fields = fields
        self.shape = shape
        """Of its blocks; None where it has values alone."""
        self.digest = namespace_digest(fields, shape)
        """The 32 bytes that name it everywhere."""
        self._number = 0
        self._record_number: Optional[int] = None
        """In the records of the shared index; None where there is none."""
        self._prefix = hashlib.sha256(_KEY_TAG + self.digest)

    def __repr__(self) -> str:
        named = (f"{name}={field!r}" for name, field in zip(_FIELDS[1:], self.fields[1:]) if field)
        shape = () if self.shape is None else (repr(self.shape),)
        return f"<Namespace {', '.join((repr(self.fields[0]), *named, *shape))}>"

    def _register(self, connection: Connection, timeout: float) -> None:
        texts = b"".join(wire.text(each) for each in self.fields)
        parts = b"" if self.shape is None else self.shape.part()
        body = struct.pack("<II", int(self.shape is not None), 0) + texts + parts
        reply = connection.request(wire.REGISTER, body, timeout)
        (self._number,) = _U32.unpack_from(reply)
        self._record_number = None
        if len(reply) >= 40:
            (self._record_number,) = _U32.unpack_from(reply, 4)
            if reply[8:40] != self.digest:
                raise KvCacheError(f"the server computes another digest of the namespace {self.fields[0]!r}")

    def key_digest(self, key: bytes) -> bytes:
        """Returns the digest of a key, by which the shared index knows it."""
        digest = self._prefix.copy()
        digest.update(wire.key(key))
        return digest.digest()

    def contains(self, key: bytes) -> bool:
        """Returns whether a value is in memory or on a disk. Without a message where the server shares memory."""
        connection = self._client._connected()
        index = self._client._index
        if index is not None:
            return index.contains(self.key_digest(key))
        return connection.request(wire.CONTAINS_OBJECT, self._item(key), self._client.timeout)[0] == 1

    def _item(self, key: bytes) -> bytes:
        plain = wire.key(key)
        return self._item_head(plain) + plain

    def _item_head(self, key: bytes) -> bytes:
        return _ITEM.pack(self._number, len(key))

    def contains_now(self, key: bytes) -> Optional[bool]:
        """As ``contains``, but never waits: None where only a message could tell, or no server is connected."""
        index = self._client._index
        if index is None or not self._client.connected:
            return None
        return index.contains(self.key_digest(key))

    def match(self, keys: Sequence[bytes], pin_seconds: float = 0.0) -> int:
        """Returns how many leading keys are present.

        :param pin_seconds: keep those in memory that long, an hour at most. Pins hold a quarter of the server's memory:
            values beyond that are counted, and not kept
        """
        total = 0
        for begin in range(0, len(keys), wire.MAX_KEYS):
            part = keys[begin : begin + wire.MAX_KEYS]
            reply = self._client._request(wire.MATCH_OBJECTS, self._match_body(part, pin_seconds))
            (present,) = _U32.unpack_from(reply)
            total += present
            if present < len(part):
                break
        return total

    def submit_contains(self, key: bytes, callback: Callable[[Optional[bool]], None]) -> None:
        """As ``contains``, without waiting. The callback gets None when it failed."""
        check_callback("callback", callback)

        def finish(reply: Reply) -> None:
            try:
                callback(reply.value()[0] == 1)
            except KvCacheError:
                callback(None)

        self._client._submit(wire.CONTAINS_OBJECT, self._item(key), finish)

    def submit_match(self, keys: Sequence[bytes], callback: Callable[[Optional[int]], None]) -> None:
        """As ``match`` for at most 8,192 keys, without waiting. The callback gets None when it failed."""
        check_callback("callback", callback)

        def finish(reply: Reply) -> None:
            try:
                callback(_U32.unpack_from(reply.value())[0])
            except KvCacheError:
                callback(None)

        self._client._submit(wire.MATCH_OBJECTS, self._match_body(keys, 0.0), finish)

    def _match_body(self, keys: Sequence[bytes], pin_seconds: float) -> bytes:
        if len(keys) > wire.MAX_KEYS:
            raise ValueError(f"{len(keys)} keys; allowed: 0 to {wire.MAX_KEYS}")
        nanos = wire.nanos(pin_seconds, _MOST_PIN_SECONDS, "pin_seconds")
        head = struct.pack("<IIQ", self._number, len(keys), nanos)
        return head + wire.keys(keys)

    def get(self, key: bytes) -> Optional[bytearray]:
        """Returns a value, or None when it is absent. Waits for one that is on a disk."""
        data = self._get(key, None)
        if data is None:
            return None
        return data.obj if isinstance(data.obj, bytearray) else bytearray(data)

    def get_into(self, key: bytes, into: memoryview) -> bool:
        """Reads a value of exactly the buffer's size. Returns False when it is absent or has another size."""
        target = memoryview(into).cast("B")
        if target.readonly:
            raise ValueError("the buffer is read-only; allowed: memory that can be written")
        data = self._get(key, target)
        return data is not None and data.obj is target.obj

    def _get(self, key: bytes, into: Optional[memoryview]) -> Optional[memoryview]:
        client = self._client
        connection = client._connected()
        body = self._get_body(key, True, False, 0)
        reply = Reply(time.monotonic() + client.timeout, into, lambda answer: answer[16] == 1)
        answer = connection.request(wire.GET_OBJECT, body, client.timeout, reply=reply)
        (lease,) = struct.unpack_from("<Q", answer)
        if lease == 0:
            return self._get_from_disk(key, into)
        connection.send(wire.RELEASE, struct.pack("<IIQ", 1, 0, lease), None)
        return reply.data

    def _get_body(self, key: bytes, send: bool, places: bool, nanos: int) -> bytes:
        plain = wire.key(key)
        return struct.pack("<IIBB6xQ", self._number, len(plain), int(send), int(places), nanos) + plain

    def _get_from_disk(self, key: bytes, into: Optional[memoryview]) -> Optional[memoryview]:
        if not self.contains(key):
            return None
        client = self._client
        connection = client._connected()
        nanos = int(client.timeout * 0.9e9)
        body = self._get_body(key, False, False, nanos)
        answer = connection.request(wire.GET_OBJECT, body, client.timeout)
        (lease,) = struct.unpack_from("<Q", answer)
        if lease == 0:
            return None
        read = Reply(time.monotonic() + client.timeout, into, lambda answer: True)
        connection.request(wire.READ, struct.pack("<QII", lease, 0, 1), client.timeout, reply=read)
        connection.send(wire.RELEASE, struct.pack("<IIQ", 1, 0, lease), None)
        return read.data

    @contextlib.contextmanager
    def view(self, key: bytes) -> Iterator[Optional[List[memoryview]]]:
        """Shows a value in the server's memory, in pieces, read-only, or None when it is not in memory.

        The bytes are the value's until the end of the ``with`` block, or of the connection: check
        ``Client.connected`` after use.
        """
        client = self._client
        connection = client._connected()
        slots = client._slots()
        body = self._get_body(key, False, True, 0)
        answer = connection.request(wire.GET_OBJECT, body, client.timeout)
        lease, _ = struct.unpack_from("<QQ", answer)
        if lease == 0:
            yield None
            return
        try:
            (count,) = _U32.unpack_from(answer, 32)
            pieces = [_SPAN.unpack_from(answer, 40 + 16 * each) for each in range(count)]
            yield [slots[offset : offset + size] for offset, size in pieces]
        finally:
            with contextlib.suppress(KvCacheError):
                connection.send(wire.RELEASE, struct.pack("<IIQ", 1, 0, lease), None)

    def put(self, key: bytes, value: Union[bytes, bytearray, memoryview]) -> Result:
        """Stores a value, in place of one that is there. The server computes the checksum.

        :return: COPIED, or NO_ROOM or DECLINED: then a value that was there stays
        """
        data = memoryview(value).cast("B")
        if not 1 <= data.nbytes <= wire.MAX_PAYLOAD_BYTES:
            raise ValueError(f"a value of {data.nbytes} bytes; allowed: 1 to {wire.MAX_PAYLOAD_BYTES}")
        plain = wire.key(key)
        head = _ITEM.pack(self._number, len(plain))
        with self._client._staged([data]) as staged:
            if staged is not None:
                return wire.put_result(self._client._request(wire.PUT_OBJECT_STAGED, head + staged + plain))
        head += _ITEM.pack(0, wire.NO_CHECKSUM)
        return wire.put_result(self._client._request(wire.PUT_OBJECT, head + plain, data))

    def delete(self, key: bytes) -> bool:
        """Forgets a value; returns whether there was one."""
        return self._client._request(wire.DROP_OBJECT, self._item(key))[0] == 1

    def delete_all(self, keys: Sequence[bytes]) -> int:
        """Forgets values, 8,192 in a message; returns how many there were."""
        return self.delete_digests([self.key_digest(key) for key in keys])

    def delete_digests(self, digests: Sequence[bytes]) -> int:
        """Forgets values by their digests, as ``listing`` and ``key_digest`` return them; returns how many there were."""
        dropped = 0
        for begin in range(0, len(digests), wire.MAX_KEYS):
            part = digests[begin : begin + wire.MAX_KEYS]
            body = _ITEM.pack(self._number, len(part)) + b"".join(each[:DIGEST_BYTES] for each in part)
            dropped += _U32.unpack_from(self._client._request(wire.DROP_OBJECTS, body))[0]
        return dropped

    def listing(self) -> Dict[bytes, int]:
        """Returns all values in memory or on a disk: the bytes of each with its key, by the first 16 bytes of its digest.

        The server does not know the keys. It looks at every record that it has.
        """
        found: Dict[bytes, int] = {}
        last = bytes(DIGEST_BYTES)
        while True:
            body = _ITEM.pack(self._number, _MOST_LISTED) + last
            reply = self._client._request(wire.LIST_OBJECTS, body)
            (count,) = _U32.unpack_from(reply)
            found.update(_LISTED.iter_unpack(memoryview(reply)[8 : 8 + _LISTED.size * count]))
            if count < _MOST_LISTED:
                return found
            last = bytes(reply[8 + _LISTED.size * (count - 1) :][:DIGEST_BYTES])

    def usage(self) -> Tuple[int, int]:
        """Returns how many values and blocks are in memory or on a disk, and the bytes of them and of their keys."""
        reply = self._client._request(wire.STATS, b"")
        for at in range(_STATS_BYTES, len(reply), _NAMESPACE_STATS.size):
            number, *_, live, size = _NAMESPACE_STATS.unpack_from(reply, at)
            if number == self._number:
                return live, size
        return 0, 0

    def drop(self) -> int:
        """Forgets all values and blocks of the namespace, also for others who use it; returns how many there were.

        What is being stored at that moment is not kept.
        """
        return self._drop(new_mark())

    def _drop(self, mark: bytes) -> int:
        """
        :param mark: by which servers recognize one drop that each of them is asked for
        """
        reply = self._client._request(wire.DROP_NAMESPACE, _U32.pack(self._number) + mark)
        return int(struct.unpack_from("<Q", reply)[0])

    def submit_drop(self, callback: Callable[[bool], None]) -> None:
        """As ``drop``, without waiting. The callback hears whether it was done."""
        check_callback("callback", callback)
        self._submit_drop(new_mark(), callback)

    def _submit_drop(self, mark: bytes, callback: Callable[[bool], None]) -> None:
        def finish(reply: Reply) -> None:
            callback(reply.error is None and reply.status == Status.OK)

        self._client._submit(wire.DROP_NAMESPACE, _U32.pack(self._number) + mark, finish)

    def submit_store(
        self,
        region: Region,
        values: Sequence[Tuple[bytes, Sequence[Span]]],
        timeout: Optional[float] = None,
        on_done: Optional[Callable[[Job], None]] = None,
    ) -> Job:
        """Has the server copy values out of a region; each is gathered from its spans, in order.

        A value of the same size that is in memory is kept, and its result is PRESENT. At most 8,192 values a job.

        :param timeout: seconds after which the job has failed; those of the client by default
        :param on_done: hears of the job once, in the thread that finds out, perhaps before this returns
        """
        return self._client._copy(self, region, 1, values, timeout, on_done)

    def submit_load(
        self,
        region: Region,
        values: Sequence[Tuple[bytes, Sequence[Span]]],
        timeout: Optional[float] = None,
        on_done: Optional[Callable[[Job], None]] = None,
    ) -> Job:
        """Has the server copy values into a region; each is scattered over its spans, in order."""
        return self._client._copy(self, region, 0, values, timeout, on_done)

    def store(self, region: Region, values: Sequence[Tuple[bytes, Sequence[Span]]]) -> List[Result]:
        """As ``submit_store``, and waits."""
        self._client._connected()
        return self._client.wait(self.submit_store(region, values))

    def load(self, region: Region, values: Sequence[Tuple[bytes, Sequence[Span]]]) -> List[Result]:
        """As ``submit_load``, and waits."""
        self._client._connected()
        return self._client.wait(self.submit_load(region, values))

    def expect(self, keys: Sequence[bytes], seconds: float = 0.0) -> None:
        """Announces that a request for these keys waits, or comes in so many seconds. Never waits for a reply."""
        self._hint(_EXPECT, wire.nanos(seconds), keys)

    def forget(self, keys: Sequence[bytes]) -> None:
        """Says that these keys will not be asked for: they are the next to go. Never waits for a reply."""
        self._hint(_FORGET, 0, keys)

    def pin(self, keys: Sequence[bytes], seconds: float) -> None:
        """Keeps values that are in memory there; 0 seconds end that. Never waits for a reply."""
        self._hint(_PIN, wire.nanos(seconds, _MOST_PIN_SECONDS), keys)

    def label(
        self, keys: Sequence[bytes], kind: str = "other", session: int = 0, turn: int = 0, last: bool = False
    ) -> None:
        """Says of which kind of request and session these keys are. Never waits for a reply.

        :param kind: chat, agent, batch or other
        :param session: its number in the namespace, the same for all clients; 0 for none
        :param turn: from 1; 0 if unknown
        """
        if kind not in _KINDS:
            raise ValueError(f"kind = {kind!r}; allowed: {', '.join(sorted(_KINDS))}")
        if not 0 <= session < 1 << 63 or not 0 <= turn < 1 << 31:
            raise ValueError(f"session = {session}, turn = {turn}; allowed: 0 to 2^63 - 1 and 0 to 2^31 - 1")
        self._hint(_LABEL, 0, keys, struct.pack("<BBHIQ", _KINDS[kind], int(last), 0, turn, session))

    def _hint(self, kind: int, nanos: int, keys: Sequence[bytes], more: bytes = b"") -> None:
        for begin in range(0, len(keys), wire.MAX_KEYS):
            part = keys[begin : begin + wire.MAX_KEYS]
            head = struct.pack("<IIB3xIQ", self._number, len(part), kind, 0, nanos)
            self._client._submit(wire.HINT_OBJECTS, head + more + wire.keys(part), None)


class BaseClient(ABC):
    """What a client of one server and a client of a cluster have in common."""

    tenant: str

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    @abstractmethod
    def server(self) -> str:
        """``host:port`` of the server, or of each that is in the cluster."""

    @abstractmethod
    def close(self) -> None:
        """Ends the session."""

    def namespace(
        self,
        model: str,
        *,
        revision: str = "",
        dtype: str = "",
        layout: str = "",
        adapter: str = "",
        salt: str = "",
    ) -> Namespace:
        """Returns the namespace of all that must match for values to be of use; the same object for equal fields.

        :param layout: whatever tells apart how the bytes are laid out: engine, rank, page size
        """
        return self._namespace((model, revision, dtype, layout, adapter, self.tenant, salt), None)

    def blocks(
        self,
        model: str,
        shape: BlockShape,
        *,
        revision: str = "",
        dtype: Optional[str] = None,
        layout: str = "",
        adapter: str = "",
        salt: str = "",
    ) -> Blocks:
        """Returns the blocks of a model, under chained keys; the fields are those of ``namespace``.

        :param shape: checked here; ``ValueError`` names the field and the allowed range
        :param dtype: of the stored bytes, as the engine names it; that of the shape by default
        """
        if not isinstance(shape, BlockShape):
            raise TypeError(f"shape is {type(shape).__name__}; allowed: a BlockShape")
        shape.check()
        fields = (model, revision, shape.dtype if dtype is None else dtype, layout, adapter, self.tenant, salt)
        return self._blocks(fields, shape)

    def _namespace(self, fields: Tuple[str, ...], shape: Optional[BlockShape]) -> Namespace:
        for name, field in zip(_FIELDS, fields):
            if not isinstance(field, str):
                raise TypeError(f"{name} is {type(field).__name__}; allowed: a str of up to {_MOST_FIELD_BYTES} bytes")
            size = len(field.encode("utf-8", "surrogatepass"))
            if size > _MOST_FIELD_BYTES:
                raise ValueError(f"{name} has {size} bytes as UTF-8; allowed: up to {_MOST_FIELD_BYTES}")
        if not fields[0]:
            raise ValueError('model = ""; allowed: a name')
        return self._register(fields, shape)

    @abstractmethod
    def _register(self, fields: Tuple[str, ...], shape: Optional[BlockShape]) -> Namespace:
        """Returns the namespace of fields that were checked."""

    @abstractmethod
    def _blocks(self, fields: Tuple[str, ...], shape: BlockShape) -> Blocks:
        """Returns the blocks of a shape that was checked."""


class Client(BaseClient):
    """A session with one server.

    Threads: any. Calls that wait take ``timeout`` seconds at most, and as long again where they have to connect first. One
    that takes longer gives up the connection, as its state is not known. Methods that begin with ``submit``, hints, ``poll``
    and ``contains_now`` never wait: they are for the thread of an engine's scheduler.

    A connection that ends is opened again by a thread in the background, or by the next call that may wait. Then
    namespaces and regions are registered again; jobs on their way have failed. A client belongs to the process that
    made it, and not to one that it forks.

    :param address: ``host:port`` of the server's ``transport.listen``; the port is 7420 by default
    :param tenant: that this client speaks for
    :param secret: of the server or tenant, where it asks for one
    :param tls: True for the system's certificates, or a context
    :param timeout: in seconds
    :param lazy: whether to connect later, in the background
    :param program: that uses this client, and its version, in up to 200 bytes: the server's operators see it
    """

    def __init__(
        self,
        address: str = "127.0.0.1",
        *,
        tenant: str = "",
        secret: Optional[bytes] = None,
        tls: Union[bool, ssl.SSLContext] = False,
        timeout: float = 10.0,
        lazy: bool = False,
        program: str = "",
    ) -> None:
        if not isinstance(address, str):
            raise TypeError(f"address = {address!r:.100}; allowed: a str, host or host:port")
        texts = (("tenant", tenant, str), ("program", program, str))
        for name, value, allowed in (*texts, ("secret", b"" if secret is None else secret, bytes)):
            if not isinstance(value, allowed):
                raise TypeError(f"{name} is {type(value).__name__}; allowed: {allowed.__name__}")
        if not isinstance(timeout, (int, float)) or not 0 < timeout <= 86_400:
            raise ValueError(f"timeout = {timeout!r:.100}; allowed: more than 0 and up to 86400 seconds")
        self.address = host_and_port(address)
        if len(program.encode()) > _MOST_PROGRAM_BYTES:
            raise ValueError(f"program has {len(program.encode())} bytes as UTF-8; allowed: up to {_MOST_PROGRAM_BYTES}")
        self.tenant = tenant
        self.timeout = timeout
        mine = f"kvcache {wire.PACKAGE_VERSION}"
        self._program = f"{program}, {mine}" if program else f"{mine} for Python"
        self._secret = secret
        self._tls = ssl.create_default_context() if tls is True else (tls or None)
        self._failure: Optional[BaseException] = None
        """Why the last attempt to connect has failed."""
        self._connecting = threading.Lock()
        self._connection: Optional[Connection] = None
        self._index: Optional[SharedIndex] = None
        self._share: Optional[Tuple[int, str, str, str]] = None
        self._slot_map: Optional[memoryview] = None
        self._stage: Optional[Stage] = None
        self._stage_lock = threading.Lock()
        self._chain_slots: Optional[ChainSlots] = None
        self._namespaces: Dict[Tuple[Tuple[str, ...], Optional[BlockShape]], Namespace] = {}
        self._regions: List[Region] = []
        self._joined: List[Connection] = []
        self._closed = threading.Event()
        self._wanted = threading.Event()
        if not lazy:
            self._connected()
        self._keeper = threading.Thread(target=self._keep, name="kvcache-session", daemon=True)
        self._keeper.start()

    @property
    def server(self) -> str:
        """``host:port``."""
        host, port = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def __repr__(self) -> str:
        state = "closed" if self._closed.is_set() else "connected" if self.connected else "not connected"
        shared = ", shares memory" if self.shares_memory else ""
        return f"<Client of {self.server}{f', tenant {self.tenant!r}' if self.tenant else ''}, {state}{shared}>"

    @property
    def connected(self) -> bool:
        """Whether there is a session with the server."""
        connection = self._connection
        return connection is not None and connection.lost is None

    @property
    def shares_memory(self) -> bool:
        """Whether the server's index is mapped, so that it can also map regions of this process."""
        return self.connected and self._index is not None

    @property
    def shared_directory(self) -> Optional[str]:
        """Where the server's shared memory lies on this host; None where this process cannot map it."""
        share = self._share
        return share[1] if share is not None and self.shares_memory else None

    def fileno(self) -> int:
        """A descriptor to wait on until ``poll`` has something to do; -1 without a connection."""
        connection = self._connection
        return connection.fileno() if connection is not None and connection.lost is None else -1

    def connect(self) -> None:
        """Connects now, where there is no session; raises ``ConnectionLost`` or what the server rejects."""
        self._connected()

    def _connected(self) -> Connection:
        connection = self._connection
        if connection is not None and connection.lost is None:
            return connection
        with self._connecting:
            connection = self._connection
            if connection is None or connection.lost is not None:
                try:
                    connection = self._connect()
                    self._failure = None
                except BaseException as failed:
                    self._failure = failed
                    raise
            return connection

    def _join(self, control: Connection) -> Connection:
        """Opens a further connection of the session, for a thread that moves values by itself. Waits."""
        connection = Connection(*self._of_session(), control.session, self._program)
        with self._connecting:
            lost = [each for each in self._joined if each.lost is not None]
            self._joined = [each for each in self._joined if each.lost is None]
            self._joined.append(connection)
        for each in lost:
            each.close()
        return connection

    def _of_session(self) -> Tuple[Tuple[str, int], str, Optional[bytes], Optional[ssl.SSLContext], float]:
        return self.address, self.tenant, self._secret, self._tls, self.timeout

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ConnectionLost("the client is closed")

    def _connect(self) -> Connection:
        self._check_open()
        if self._connection is not None:
            self._connection.close()
        self._index = self._slot_map = self._stage = self._share = None
        connection = Connection(*self._of_session(), program=self._program)
        try:
            index = self._map(connection)
            for namespace in list(self._namespaces.values()):
                namespace._register(connection, self.timeout)
            for region in list(self._regions):
                region._register(connection, index, self.timeout)
        except BaseException:
            connection.close()
            raise
        self._index = index
        self._chain_slots = ChainSlots(connection)
        self._connection = connection
        return connection

    def _map(self, connection: Connection) -> Optional[SharedIndex]:
        if not connection.capabilities & wire.SHARED_MEMORY:
            return None
        try:
            body = connection.request(wire.SHARE, b"", self.timeout)
        except Rejected as refused:
            if refused.status in (Status.UNSUPPORTED, Status.FORBIDDEN):
                return None
            raise
        (epoch,) = struct.unpack_from("<Q", body)
        directory, at = wire.read_text(body, 8)
        slots, at = wire.read_text(body, at)
        records, _ = wire.read_text(body, at)
        self._share = (epoch, directory, slots, records)
        return try_open(directory, records, epoch)

    def _slots(self) -> memoryview:
        if self._index is None or self._share is None:
            raise KvCacheError("the server shares no memory with this process; use get")
        if self._slot_map is None:
            descriptor = open_file(self._share[1], self._share[2], os.O_RDONLY)
            try:
                self._slot_map = memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
            finally:
                os.close(descriptor)
        return self._slot_map

    def _blocks(self, fields: Tuple[str, ...], shape: BlockShape) -> Blocks:
        return Blocks(self, self._namespace(fields, shape), shape)

    def _register(self, fields: Tuple[str, ...], shape: Optional[BlockShape]) -> Namespace:
        with self._connecting:
            self._check_open()
            known = self._namespaces.get((fields, shape))
            if known is not None:
                return known
            namespace = Namespace(self, fields, shape)
            connection = self._connection
            if connection is not None and connection.lost is None:
                namespace._register(connection, self.timeout)
            self._namespaces[fields, shape] = namespace
            return namespace

    def region(self, path: str) -> Region:
        """Registers a file of this user on the server's host, such as an engine's pool in ``/dev/shm``.

        Without a connection it is registered when there is one. Where the server does not map it,
        ``Region.error`` says why, and its jobs fail.
        """
        return self._register_region(path, None)

    def _register_region(self, path: str, address: Optional[int]) -> Region:
        if not isinstance(path, str):
            raise TypeError(f"path is {type(path).__name__}; allowed: str")
        with self._connecting:
            self._check_open()
            region = Region(self, path, address)
            connection = self._connection
            if connection is not None and connection.lost is None:
                region._register(connection, self._index, self.timeout)
            self._regions.append(region)
            return region

    def region_of(self, buffer: memoryview) -> Tuple[Region, int]:
        """Registers the file behind shared memory of this process.

        :return: the region, and where the buffer begins in it
        """
        self._check_open()
        view = memoryview(buffer)
        if view.readonly:
            raise ValueError("the buffer is read-only; allowed: memory that can be written")
        address = address_of(view.cast("B"))
        found = locate(address, view.nbytes)
        if found is None:
            raise KvCacheError("the buffer is no shared mapping of a file that could be named")
        return self._register_region(found.path, address), found.offset_of(address)

    def _drop_region(self, region: Region) -> None:
        with self._connecting:
            if region not in self._regions:
                return
            self._regions.remove(region)
            connection = self._connection
        if connection is not None and connection.lost is None:
            with contextlib.suppress(KvCacheError):
                connection.request(wire.DROP_REGION, _U32.pack(region._number), self.timeout)

    def _request(self, kind: int, body: bytes, payload: Optional[memoryview] = None) -> bytes:
        return self._connected().request(kind, body, self.timeout, payload)

    def _submit(self, kind: int, body: bytes, callback: Optional[Callable[[Reply], None]]) -> Optional[Reply]:
        """Sends a request without waiting. Without a connection the callback hears so at once."""
        reply = Reply(time.monotonic() + self.timeout + _GRACE_SECONDS)
        reply.callback = callback
        connection = self._connection
        try:
            if connection is None or connection.lost is not None:
                raise self._unconnected()
            connection.send(kind, body, reply, None, int(self.timeout * 1e9))
        except ConnectionLost as lost:
            self._wanted.set()
            reply.error = lost
            reply.done = True
            if callback is not None:
                callback(reply)
        return reply

    def _copy(
        self,
        namespace: Namespace,
        region: Region,
        direction: int,
        values: Sequence[Tuple[bytes, Sequence[Span]]],
        timeout: Optional[float],
        on_done: Optional[Callable[[Job], None]],
    ) -> Job:
        if not isinstance(region, Region):
            raise TypeError(f"region is {type(region).__name__}; allowed: a Region of Client.region or region_of")
        if region._client is not self:
            raise ValueError("the region is of another client; register the memory with this one")
        if on_done is not None:
            check_callback("on_done", on_done)
        if not hasattr(values, "__len__"):
            raise TypeError(f"values is {type(values).__name__}; allowed: a sequence of (key, spans)")
        if not 0 < len(values) <= wire.MAX_KEYS:
            raise ValueError(f"{len(values)} values; allowed: 1 to {wire.MAX_KEYS}")
        seconds = self.timeout if timeout is None else timeout
        wire.nanos(seconds, 86_400, "timeout")
        job = Job(len(values), on_done)
        # Numbers change when the connection does, so they are read with the connection that is used.
        connection = self._connection
        body = self._copy_body(namespace, region, direction, values, seconds)
        reply = Reply(time.monotonic() + seconds + _GRACE_SECONDS, holds=True)
        reply.callback = lambda done: job._finish(done, None)
        job._reply = reply
        job._connection = connection
        try:
            if connection is None or connection.lost is not None:
                raise self._unconnected()
            if region.error is not None:
                raise region.error
            connection.send(wire.COPY, body, reply, None, int(seconds * 1e9))
        except KvCacheError as failed:
            reply.callback = None
            job._finish(None, failed)
        return job

    @staticmethod
    def _copy_body(
        namespace: Namespace,
        region: Region,
        direction: int,
        values: Sequence[Tuple[bytes, Sequence[Span]]],
        seconds: float,
    ) -> bytes:
        until = time.monotonic_ns() + int(seconds * 1e9)
        head = struct.pack(
            "<IB3xIIQQ", region._number, direction, namespace._number, len(values), int(seconds * 0.9e9), until
        )
        parts = [head]
        add = parts.append
        try:
            for key, spans in values:
                plain = wire.key(key)
                add(_ITEM.pack(len(plain), len(spans)))
                add(plain)
                for offset, size in spans:
                    if not 0 <= offset < _MOST_BYTES or not 0 <= size < _MOST_BYTES:
                        raise ValueError(f"a span of {size} bytes from {offset} on; allowed: 0 to 2^62 for both")
                    add(_SPAN.pack(offset, size))
        except (TypeError, ValueError, struct.error):
            _check_types(values)
            raise
        return b"".join(parts)

    def _unconnected(self) -> ConnectionLost:
        self._wanted.set()
        closed = self._closed.is_set()
        return ConnectionLost("the client is closed" if closed else "there is no connection to the server now")

    def wait(self, job: Job, timeout: Optional[float] = None) -> List[Result]:
        """Waits until a job is done, and returns its results or raises what went wrong.

        :param timeout: a job that is not done by then goes on; by default this waits until the job's own time is over
        """
        if timeout is not None:
            wire.nanos(timeout, 86_400, "timeout")
        reply = job._reply
        connection = job._connection
        if not job.done and reply is not None and connection is not None:
            seconds = reply.deadline - time.monotonic() if timeout is None else timeout
            connection.wait(reply, max(0.0, seconds), gives_up=False)
            while not job.done and (reply.done or timeout is None):
                connection.poll()  # its time is over, or another thread is just finishing it
                time.sleep(0)
            if not job.done:
                raise KvCacheError(f"the job is not done within {timeout:g} s; it goes on")
        if job.error is not None:
            raise job.error
        return job.results

    def poll(self) -> None:
        """Takes the replies that have arrived, without waiting."""
        connection = self._connection
        if connection is not None:
            connection.poll()

    def watch(self) -> None:
        """Has a thread take the replies as they arrive, so that jobs are done without calls of ``poll``."""
        threading.Thread(target=self._watch, name="kvcache-replies", daemon=True).start()

    def _watch(self) -> None:
        waiting = select.poll()
        while not self._closed.is_set():
            connection = self._connection
            if connection is None or connection.lost is not None:
                self._closed.wait(0.05)
                continue
            waiting.register(connection.fileno(), select.POLLIN)
            try:
                waiting.poll(100)
                waiting.unregister(connection.fileno())
            except (OSError, ValueError, KeyError):
                continue
            connection.poll()

    def _gather(self, pieces: Sequence[memoryview], seconds: float) -> Optional[Tuple[Stage, int, bytes]]:
        """Copies what is put into memory of the server, and says how a request names it.

        :param seconds: to wait for room there; None is returned where there is none by then, and where it is sent
        :return: the stage, the part of it that the caller gives back, and the part's name in requests
        """
        size = sum(each.nbytes for each in pieces)
        stage = self._staging(self._connected())
        at = None if stage is None else stage.take(size, seconds)
        if stage is None or at is None:
            return None
        end = at
        for each in pieces:
            stage.memory[end : end + each.nbytes] = each
            end += each.nbytes
        return stage, at, struct.pack("<QQII", at, size, 0, wire.NO_CHECKSUM)

    @contextlib.contextmanager
    def _staged(self, pieces: Sequence[memoryview]) -> Iterator[Optional[bytes]]:
        """As ``_gather`` for a request that is waited for; None where it is sent, as what is small always is."""
        large = sum(each.nbytes for each in pieces) >= _STAGE_FROM
        gathered = self._gather(pieces, self.timeout) if large else None
        if gathered is None:
            yield None
            return
        stage, at, name = gathered
        try:
            yield name
        finally:
            stage.give(at)

    def _staging(self, connection: Connection) -> Optional[Stage]:
        """Memory of the server that puts are written into, or None where it gives none."""
        if self._index is None or not connection.capabilities & wire.STAGING:
            return None
        with self._stage_lock:
            if self._stage is None:
                try:
                    reply = connection.request(wire.STAGE, struct.pack("<Q", _STAGE_BYTES), self.timeout)
                except Rejected:
                    return None
                size, ticket = struct.unpack_from("<QQ", reply)
                name, _ = wire.read_text(reply, 16)
                descriptor = open_file(self._index.directory, name, os.O_RDWR)
                try:
                    whole = memoryview(mmap.mmap(descriptor, _STAGE_HEADER + size))
                finally:
                    os.close(descriptor)
                if bytes(whole[:8]) != b"KVCSTAGE" or int.from_bytes(whole[16:24], "little") != ticket:
                    raise KvCacheError(f"{name} is not the file that the server made for this session")
                self._stage = Stage(whole[_STAGE_HEADER:])
            return self._stage

    def _keep(self) -> None:
        """Keeps the session alive, and connects again after it has ended. Whatever fails, it goes on: an engine that
        only looks whether there is a session would miss for ever."""
        pause = 0.1
        while not self._closed.is_set():
            connection = self._connection
            try:
                if connection is None or connection.lost is not None:
                    self._connected()
                    continue
                pause = 0.1
                self._wanted.wait(min(connection.lease_seconds / 3, 5.0))
                self._wanted.clear()
                if connection.lost is None and not self._closed.is_set():
                    with contextlib.suppress(KvCacheError):
                        connection.send(wire.RENEW, b"", None)
                    connection.poll()
            except Exception:
                self._closed.wait(pause)
                pause = min(pause * 2, 5.0)

    def _give_up(self, why: str) -> None:
        """Ends the calls that wait, and connects no more. For a server that is gone; ``close`` does the rest."""
        self._closed.set()
        self._wanted.set()
        for connection in (self._connection, *self._joined):
            if connection is not None:
                connection.fail(why)

    def close(self) -> None:
        """Ends the session, and all that it holds.

        Jobs on their way fail. Waits until the server has let go of their memory, no longer than their time.
        """
        self._closed.set()
        self._wanted.set()
        with self._connecting:
            for connection in self._joined:
                connection.close()
            if self._connection is not None:
                self._connection.close()
