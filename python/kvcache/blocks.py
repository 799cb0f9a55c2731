"""Blocks of a prompt, under keys that form a chain: each is a hash of all tokens up to its block's end."""

from __future__ import annotations

import array
import contextlib
import copy
import functools
import hashlib
import operator
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Callable, List, NamedTuple, Optional, Tuple, Union

from kvcache import wire
from kvcache.connection import Connection, Reply
from kvcache.errors import KvCacheError, Rejected, Status
from kvcache.shared import SharedIndex

if TYPE_CHECKING:
    from kvcache.client import Client, Namespace

DTYPES = {"f32": 4, "f16": 2, "bf16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "int8": 1}
"""Types of an element and their bytes, in the order of their codes."""

ORDERS = ("layer_kv_head_token", "layer_kv_token_head")
"""Orders of a block's axes, outermost first, by their codes; the dimension of a head is the innermost."""

_KEY_BYTES = 16
_ENTRY = struct.Struct(f">{_KEY_BYTES}sQ")
"""A block as CHAIN names it: its key, and the engine's own hash or 0."""

_NAMESPACE_TAG = "kvcache namespace v1"
_MAX_BLOCK_BYTES = 256 << 20
_MAX_TOKENS = (1 << 31) - 1
"""Of a chain."""

_MAX_TOKEN = (1 << 31) - 1
"""Negative numbers are no tokens: engines put them where a token is not known yet."""

_CHAIN_SLOTS = 16
_MAX_ENTRIES = 150_000
"""Blocks of one CHAIN, below the limit of a body."""

_READS_IN_FLIGHT = 8

_PART = struct.Struct("<HHBBBBIIIIIiQ")
_LEASED = struct.Struct("<QII")
_U32 = struct.Struct("<I")


class BlockShape(NamedTuple):
    """The array that a block is, of full attention in one part, its keys rotated from position 0.

    Any numbers may be held; ``Client.blocks`` checks them by ``check``.
    """

    layers: int
    heads: int
    """Of keys and values, in each layer."""
    dim: int
    """Elements of a head's row."""
    tokens: int
    """Of a block."""
    dtype: str = "bf16"
    """One of ``DTYPES``."""
    order: str = ORDERS[0]
    """One of ``ORDERS``."""
    planes: int = 2
    """2 for keys and values, 1 for a latent row."""

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return self.layers * self.planes * self.heads * self.dim * self.tokens * DTYPES[self.dtype]

    def check(self) -> None:
        """Raises ``ValueError`` that names what cannot be."""
        for name, most in (("layers", 1024), ("heads", 4096), ("dim", 65_536), ("tokens", 65_536), ("planes", 2)):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(f"{name} = {value!r}; allowed: 1 to {most}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype = {self.dtype!r}; allowed: {', '.join(DTYPES)}")
        if self.order not in ORDERS:
            raise ValueError(f"order = {self.order!r}; allowed: {', '.join(ORDERS)}")
        if self.block_bytes > _MAX_BLOCK_BYTES:
            raise ValueError(f"a block of {self.block_bytes} bytes; allowed: 1 to {_MAX_BLOCK_BYTES}")

    def part(self) -> bytes:
        """The one part of its namespace, as REGISTER carries it."""
        codes = (0, list(DTYPES).index(self.dtype), ORDERS.index(self.order), self.planes)
        return _PART.pack(0, 0, *codes, 0, self.layers, self.heads, self.dim, self.tokens, 0, 0)


def namespace_digest(fields: Sequence[str], shape: Optional[BlockShape]) -> bytes:
    """Returns the 32 bytes that name a namespace, from which its chains start.

    Texts go in behind their lengths and numbers as int32, both big-endian, constants by their names.
    """
    parts: List[Union[str, int]] = [_NAMESPACE_TAG, *fields, 0 if shape is None else 1]
    if shape is not None:
        parts += [0, 0, "FULL", 0, 0]  # group, rank, kind, window, first position
        parts += [shape.layers, shape.planes, shape.heads, shape.dim, shape.tokens]
        parts += [shape.dtype.upper(), shape.order.upper()]
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else b""
        digest.update(struct.pack(">i", len(encoded) if isinstance(part, str) else part) + encoded)
    return digest.digest()


class Chain:
    """The keys of a sequence's full blocks, in order; see ``Blocks.chain``. Not for use by several threads at a time.

    ``digest[i] = SHA-256(digest[i - 1] + tokens of block i as int32, little-endian)`` from the namespace's digest on, and
    a key is the first 16 bytes. Tokens of a last block that is not full are kept for ``extend``.

    An engine's own keys, which must themselves name all tokens before their block, are hashed one by one instead:
    ``SHA-256(namespace's digest + key)``. A namespace takes tokens or such keys, as the two name one block differently.
    """

    def __init__(self, namespace: bytes, block_tokens: int) -> None:
        self.namespace = namespace
        """Digest of the namespace."""
        self.block_tokens = block_tokens
        self._entries = bytearray()
        self._last = namespace
        self._rest = b""
        self._of_tokens: Optional[bool] = None

    def __repr__(self) -> str:
        rest = len(self._rest) // 4
        return f"<Chain of {len(self)} blocks of {self.block_tokens} tokens{f' and {rest} tokens more' if rest else ''}>"

    def __len__(self) -> int:
        return len(self._entries) // _ENTRY.size

    def key(self, index: int) -> bytes:
        """Returns the 16 bytes of a block's key."""
        at = number_of("index", index, self, len(self) - 1) * _ENTRY.size
        return bytes(self._entries[at : at + _KEY_BYTES])

    def keys_and_hashes(self, begin: int, end: int) -> bytearray:
        """Returns the blocks from one on up to another as CHAIN names them: the key of each, and the engine's own hash."""
        return self._entries[begin * _ENTRY.size : end * _ENTRY.size]

    def copy(self) -> Chain:
        """Returns a chain with the same blocks, for a sequence that goes on differently."""
        other = copy.copy(self)
        other._entries = self._entries[:]
        return other

    def extend(self, tokens: Sequence[int]) -> None:
        """Adds tokens at the end. Only blocks that become full are hashed.

        :param tokens: integers from 0 to 2^31 - 1; an ``array("i")`` or a ``memoryview`` of int32 is taken fastest.
            Bytes are rejected: they would be taken for numbers of one or of four bytes
        """
        added = _int32(tokens)
        if not added:
            return
        self._begin(True)
        data = self._rest + added
        step = 4 * self.block_tokens
        full = len(data) - len(data) % step
        if len(self) * self.block_tokens + len(data) // 4 > _MAX_TOKENS:
            raise ValueError(f"more tokens than a chain holds; allowed: 0 to {_MAX_TOKENS}")
        entries = bytearray()
        last, sha256, no_hash = self._last, hashlib.sha256, bytes(8)
        for at in range(0, full, step):
            last = sha256(last + data[at : at + step]).digest()
            entries += last[:_KEY_BYTES]
            entries += no_hash
        self._last, self._rest = last, data[full:]
        self._entries += entries

    def extend_keys(self, keys: Sequence[bytes]) -> None:
        """Adds blocks that the engine has named, each by 1 to 4,096 bytes."""
        self._begin(False)
        entries = bytearray()
        for each in keys:
            plain = wire.key(each)
            digest = hashlib.sha256(self.namespace + plain).digest()
            entries += _ENTRY.pack(digest[:_KEY_BYTES], int.from_bytes(plain[-8:], "big"))
        self._entries += entries

    def set_hashes(self, hashes: Sequence[bytes], first: int = 0) -> None:
        """Tells the engine's own hashes of blocks of tokens, by which the server's events name them as the engine's do.

        Called before the blocks are put. The last 8 bytes of a hash count.
        """
        if not 0 <= first <= first + len(hashes) <= len(self):
            raise ValueError(f"{len(hashes)} hashes from {first} on; allowed: those of the {len(self)} blocks")
        for at, each in enumerate(hashes, first):
            end = (at + 1) * _ENTRY.size
            self._entries[end - 8 : end] = each[-8:].rjust(8, b"\0")

    def _begin(self, of_tokens: bool) -> None:
        if self._of_tokens is not None and self._of_tokens != of_tokens:
            raise ValueError("a chain takes tokens or an engine's keys, not both")
        self._of_tokens = of_tokens


def _int32(tokens: Sequence[int]) -> bytes:
    """Tokens as int32, little-endian."""
    if isinstance(tokens, (bytes, bytearray, str)):
        raise _refused(tokens)
    if isinstance(tokens, memoryview):
        if tokens.format != "i" or tokens.ndim != 1:
            found = f"format {tokens.format!r} and ndim {tokens.ndim}"
            raise TypeError(f"tokens is a memoryview of {found}; allowed: format 'i' (int32) and ndim 1")
        data = tokens.tobytes()
    elif isinstance(tokens, array.array) and tokens.typecode == "i":
        data = tokens.tobytes()
    else:
        try:
            data = array.array("i", tokens).tobytes()
        except (TypeError, OverflowError):
            raise _refused(tokens) from None
    if sys.byteorder == "big":
        swapped = array.array("i", data)
        swapped.byteswap()
        data = swapped.tobytes()
    if not data[3::4].isascii():  # the bytes with the signs
        raise _refused(tokens)
    return data


def _refused(tokens: Sequence[int]) -> Exception:
    """The error that names the first token that cannot be, or the whole where it is no sequence of numbers."""
    allowed = f"integers from 0 to {_MAX_TOKEN}"
    try:
        for at, token in enumerate(() if isinstance(tokens, (bytes, bytearray, str)) else tokens):
            try:
                number = operator.index(token)
            except TypeError:
                return TypeError(f"tokens[{at}] is {type(token).__name__}; allowed: {allowed}")
            if not 0 <= number <= _MAX_TOKEN:
                return ValueError(f"tokens[{at}] = {number}; allowed: {allowed}")
    except TypeError:
        pass
    each = f"a sequence of {allowed}, an array('i') or a memoryview of int32"
    return TypeError(f"tokens is {type(tokens).__name__}; allowed: {each}")


def number_of(name: str, value: int, chain: Chain, most: int) -> int:
    """Checks the number of a block."""
    try:
        number = operator.index(value)
        if 0 <= number <= most:
            return number
    except TypeError:
        raise TypeError(f"{name} is {type(value).__name__}; allowed: {_allowed(chain, most)}") from None
    raise IndexError(f"{name} = {number}; allowed: {_allowed(chain, most)}")


def _allowed(chain: Chain, most: int) -> str:
    numbers = "no number" if most < 0 else f"integers from 0 to {most}"
    return f"{numbers} (full blocks of the chain: {len(chain)})"


Block = Union[bytes, bytearray, memoryview, Sequence[Union[bytes, bytearray, memoryview]]]
"""The bytes of a block, in one piece or in several."""


class Match(NamedTuple):
    """How many leading blocks of a chain are present, each counted in the fastest place that has it."""

    device: int
    host: int
    disk: int

    @property
    def blocks(self) -> int:
        """All of them."""
        return self.device + self.host + self.disk


class ChainSlots:
    """The chains that a connection has sent, so that it sends only what follows the longest beginning they share.

    Threads: any. A chain and the request about it are sent together.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._lock = threading.RLock()
        self._slots: List[Tuple[bytearray, int, int]] = [(bytearray(), 0, 0)] * _CHAIN_SLOTS
        """Of each slot the entries of its chain, which only grow, how many of them were sent, and their namespace."""
        self._uses = list(range(_CHAIN_SLOTS))
        """The slots, those first that were not used for longest."""

    def send(
        self,
        chain: Chain,
        namespace: int,
        length: int,
        request: Tuple[int, bytes],
        reply: Reply,
        payload: Optional[memoryview],
    ) -> None:
        """Sends a request about the first blocks of a chain, after what the server does not know of it."""
        kind, rest = request
        nanos = max(0, int((reply.deadline - time.monotonic()) * 1e9))
        with self._lock:
            slot = self._define(chain._entries, namespace)
            head = struct.pack("<B3xI", slot, length)
            self.connection.send(kind, head + rest, reply, payload, nanos)

    def _define(self, entries: bytearray, namespace: int) -> int:
        count = len(entries) // _ENTRY.size
        source, shared = 0, 0
        for slot in reversed(self._uses):
            common = self._common(slot, entries, count, namespace)
            if common > shared:
                source, shared = slot, common
        grows = 0 < shared == self._slots[source][1]
        slot = source if grows or 0 < shared == count else self._uses[0]
        self._uses.remove(slot)
        self._uses.append(slot)
        if shared < count:
            self._slots[slot] = (entries, count, namespace)
        while shared < count:
            end = min(count, shared + _MAX_ENTRIES)
            head = struct.pack("<BBHIII", slot, source, 0, namespace, shared, end - shared)
            self.connection.send(wire.CHAIN, head + entries[shared * _ENTRY.size : end * _ENTRY.size], None)
            source, shared = slot, end
        return slot

    def _common(self, slot: int, entries: bytearray, count: int, namespace: int) -> int:
        """How many leading blocks a slot shares with a chain. As keys name all before them, a search finds the place."""
        sent, length, owner = self._slots[slot]
        most = min(length, count)
        if owner != namespace or most == 0 or sent is entries:
            return most if owner == namespace else 0
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            at = (middle - 1) * _ENTRY.size
            if sent[at : at + _ENTRY.size] == entries[at : at + _ENTRY.size]:
                low = middle
            else:
                high = middle - 1
        size = low * _ENTRY.size
        return low if sent[:size] == entries[:size] else 0

    def forget(self) -> None:
        """Gives all chains up, as the server did not keep one of them."""
        with self._lock:
            for slot, (_, length, namespace) in enumerate(self._slots):
                if length:
                    self.connection.send(wire.CHAIN, struct.pack("<BBHIII", slot, slot, 0, namespace, 0, 0), None)
            self._slots = [(bytearray(), 0, 0)] * _CHAIN_SLOTS


class Leased(NamedTuple):
    """Blocks that the server keeps in place, or has sent."""

    pieces: List[memoryview]
    handles: List[int]
    """Of their records, where they lie in shared memory."""
    records: Optional[SharedIndex]

    def held(self) -> int:
        """How many of them have stayed in place until now: all, unless the lease was lost."""
        if self.records is None:
            return len(self.pieces)
        lost = (number for number, handle in enumerate(self.handles) if self.records.place(handle) is None)
        return next(lost, len(self.pieces))


class Blocks:
    """Blocks of one model and shape; see ``Client.blocks``. Threads: any, with a chain of its own each.

    The store has a block only with all those before it, so what is present of a chain is a prefix of it.
    """

    def __init__(self, client: Client, namespace: Namespace, shape: BlockShape) -> None:
        self._client = client
        self.namespace = namespace
        self.shape = shape

    def __repr__(self) -> str:
        return f"<Blocks of {self.shape.block_bytes} bytes, {self.namespace!r}>"

    def chain(self, tokens: Sequence[int] = ()) -> Chain:
        """Returns the chain of a sequence of tokens, to be extended by tokens; see ``Chain.extend``."""
        chain = Chain(self.namespace.digest, self.shape.tokens)
        chain.extend(tokens)
        return chain

    def chain_of_keys(self, keys: Sequence[bytes]) -> Chain:
        """Returns the chain of blocks that the engine has named, to be extended by such keys."""
        chain = Chain(self.namespace.digest, self.shape.tokens)
        chain.extend_keys(keys)
        return chain

    def match(self, chain: Chain) -> Match:
        """Returns how much of a chain is present. Without a message where the server shares memory, has no GPU, and is not busy."""
        self._check(chain)
        self._client._connected()
        index = self._client._index
        if index is not None and not index.has_device and self.namespace._record_number is not None:
            found = index.match(chain._entries, _ENTRY.size, self.namespace._record_number)
            if found is not None:
                return Match(0, *found)
        return self._match_by_message(chain)

    def _match_by_message(self, chain: Chain) -> Match:
        if not len(chain):
            return Match(0, 0, 0)
        return Match(*struct.unpack_from("<III", self._request(chain, len(chain), wire.MATCH, b"")))

    def get(self, chain: Chain, begin: int = 0, end: Optional[int] = None, timeout: float = 0.0) -> List[bytearray]:
        """Returns the blocks of a chain that are in memory, from one on up to the first that is not.

        :param begin: 0 to the chain's length
        :param end: the block to end before; that of the chain by default
        :param timeout: seconds to wait for blocks on a disk
        """
        with self._leased(chain, begin, end, timeout) as leased:
            copies = [bytearray(each) for each in leased.pieces]
            return copies[: leased.held()]

    def get_range(
        self, chain: Chain, offset: int, size: int, begin: int = 0, end: Optional[int] = None, timeout: float = 0.0
    ) -> List[bytearray]:
        """Returns the same bytes of each block, such as one layer, from one block on up to the first that is absent.

        Nothing else is sent. Of a block that is on a disk alone the server reads little more than these bytes, if they
        are at most half of the block and 1 MiB. For ranges above 16 MiB whole blocks are sent.

        :param offset: of the first byte in each block
        :param size: bytes of each block, 1 and up
        :param begin: 0 to the chain's length
        :param end: the block to end before; that of the chain by default
        :param timeout: seconds to wait for blocks on a disk
        """
        self._check(chain)
        first, last = self._byte_range(offset, size)
        size = last - first
        begin, limit = self._bounds(chain, begin, end)
        wire.nanos(timeout, 86_400, "timeout")
        deadline = time.monotonic() + timeout
        if size > wire.MAX_RANGE_BYTES:
            with self._leased(chain, begin, limit, timeout) as leased:
                copies = [bytearray(each[first:last]) for each in leased.pieces]
                return copies[: leased.held()]
        ranges: List[bytearray] = []
        more = True
        while more and begin < limit:
            count = min(limit - begin, wire.MAX_RANGES, wire.MAX_RANGE_BYTES // size)
            left = min(timeout, max(0.0, deadline - time.monotonic()))
            pieces = self._ranges(chain, begin, count, first, size, left)
            ranges += map(bytearray, pieces)
            begin += count
            more = len(pieces) == count
        return ranges

    @staticmethod
    def _bounds(chain: Chain, begin: int, end: Optional[int]) -> Tuple[int, int]:
        """Checks blocks of a chain; returns the first and the one behind the last."""
        begin = number_of("begin", begin, chain, len(chain))
        return begin, len(chain) if end is None else min(number_of("end", end, chain, _MAX_TOKENS), len(chain))

    def _byte_range(self, offset: int, size: int) -> Tuple[int, int]:
        """Checks bytes of a block; returns the first and the one after the last."""
        for name, value in (("offset", offset), ("size", size)):
            if not hasattr(value, "__index__"):
                raise TypeError(f"{name} is {type(value).__name__}; allowed: an integer")
        first, last = operator.index(offset), operator.index(offset) + operator.index(size)
        if not 0 <= first < last <= self.shape.block_bytes:
            raise IndexError(
                f"offset = {first} and size = {last - first}; allowed: 1 byte and more of 0 to {self.shape.block_bytes}"
            )
        return first, last

    def _ranges(
        self, chain: Chain, begin: int, count: int, offset: int, size: int, timeout: float
    ) -> List[memoryview]:
        """Reads the same bytes of blocks by one request."""
        pieces: List[memoryview] = []

        def follows(body: bytes) -> bool:
            return len(pieces) < int(_U32.unpack_from(body)[0])

        rest = struct.pack("<IIIIQ", begin, count, offset, size, int(timeout * 1e9))
        self._request(chain, begin + count, wire.READ_RANGE, rest, None, timeout, follows, pieces=pieces)
        if len(pieces) > count or any(each.nbytes != size for each in pieces):
            raise KvCacheError("the server has sent a range of another size")
        return pieces

    @contextlib.contextmanager
    def view(
        self, chain: Chain, begin: int = 0, end: Optional[int] = None, timeout: float = 0.0
    ) -> Iterator[List[memoryview]]:
        """As ``get``, but shows the blocks in the server's memory, read-only, where it shares that; copies elsewhere.

        The bytes are the blocks' until the end of the ``with`` block, or of the connection: check ``Client.connected``
        after use.
        """
        with self._leased(chain, begin, end, timeout) as leased:
            yield [each.toreadonly() for each in leased.pieces]

    @contextlib.contextmanager
    def _leased(self, chain: Chain, begin: int, end: Optional[int], timeout: float) -> Iterator[Leased]:
        """Shows blocks while the server keeps them in place."""
        self._check(chain)
        begin, limit = self._bounds(chain, begin, end)
        nanos = wire.nanos(timeout, 86_400, "timeout")
        if begin >= limit:
            yield Leased([], [], None)
            return
        # Index and slots are those of this connection, or it is lost: then the request fails.
        slots = self._chain_slots()
        index = self._client._index
        memory = None if index is None else self._client._slots()
        rest = struct.pack("<IIQB", begin, 0, nanos, index is not None)
        arrives = functools.partial(_is_arriving, begin)
        body = self._request(chain, limit, wire.ACQUIRE, rest, None, timeout, arrives, slots)
        lease, ready, _ = _LEASED.unpack_from(body)
        if lease == 0:
            yield Leased([], [], index)
            return
        try:
            if index is None or memory is None:
                yield Leased(self._received(slots.connection, lease, begin, ready), [], None)
            else:
                handles = self._handles(slots.connection, body, begin, ready)
                pieces = self._in_place(index, memory, handles)
                yield Leased(pieces, handles[: len(pieces)], index)
        finally:
            with contextlib.suppress(KvCacheError):
                slots.connection.send(wire.RELEASE, struct.pack("<IIQ", 1, 0, lease), None)

    def _handles(self, connection: Connection, body: bytes, begin: int, ready: int) -> List[int]:
        """The handles of leased blocks: in the reply to ACQUIRE, or asked for where PROGRESS came after it."""
        at = _LEASED.size + 4
        if len(body) <= at:
            (lease,) = struct.unpack_from("<Q", body)
            body = connection.request(wire.PLACES, _LEASED.pack(lease, begin, ready), self._client.timeout)
            at = 0
        (count,) = _U32.unpack_from(body, at)
        return list(struct.unpack_from(f"<{count}Q", body, at + 8))

    def _in_place(self, index: SharedIndex, memory: memoryview, handles: Sequence[int]) -> List[memoryview]:
        size = self.shape.block_bytes
        pieces: List[memoryview] = []
        for handle in handles:
            place = index.place(handle)
            if place is None or place[1] != size:
                break
            pieces.append(memory[place[0] : place[0] + size])
        return pieces

    def _received(self, connection: Connection, lease: int, begin: int, ready: int) -> List[memoryview]:
        timeout = self._client.timeout
        replies: List[Reply] = []
        pieces: List[memoryview] = []
        while len(pieces) < ready:
            if len(replies) < min(ready, len(pieces) + _READS_IN_FLIGHT):
                reply = Reply(time.monotonic() + timeout, follows=lambda _: True)
                body = _LEASED.pack(lease, begin + len(replies), 1)
                connection.send(wire.READ, body, reply, None, int(timeout * 1e9))
                replies.append(reply)
                continue
            reply = replies[len(pieces)]
            connection.wait(reply, timeout)
            reply.value()
            if reply.data is None or reply.data.nbytes != self.shape.block_bytes:
                raise KvCacheError("the server has sent a block of another size")
            pieces.append(reply.data)
        return pieces

    def put(self, chain: Chain, index: int, block: Block) -> wire.Result:
        """Stores one block. Its parent, the block before it, comes first. The server computes the checksum.

        :param index: in the chain, from 0
        :param block: ``shape.block_bytes`` bytes, in one piece or in several that are gathered in order
        :return: COPIED or PRESENT; NO_PARENT; NO_ROOM or DECLINED; BUSY while another client stores it; FOREIGN if
            another namespace has its key
        """
        index, pieces = self._put_arguments(chain, index, block)
        head = struct.pack("<II", index, 0)
        with self._client._staged(pieces) as staged:
            if staged is not None:
                return wire.put_result(self._request(chain, index + 1, wire.PUT_STAGED, head + staged))
        head += struct.pack("<II", 0, wire.NO_CHECKSUM)
        data = pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))
        return wire.put_result(self._request(chain, index + 1, wire.PUT, head, data))

    def submit_put(
        self,
        chain: Chain,
        index: int,
        block: Block,
        on_done: Callable[[Optional[wire.Result]], None],
        wait: float = 0.0,
    ) -> bool:
        """As ``put``, without waiting for the server: the block is copied into its memory, and may be written again.

        The first call of a session waits for that memory. Blocks of a chain may be on their way together, in order.

        :param on_done: hears the result, or None where it is not known, in the thread that finds out
        :param wait: seconds to wait for room in what the server shares for this
        :return: False where it was not begun: there is no connection, the server shares no memory, or what it shares for
            this is full
        """
        index, pieces = self._put_arguments(chain, index, block)
        if not self._client.shares_memory:
            return False
        try:
            gathered = self._client._gather(pieces, wait)
            if gathered is None:
                return False
            stage, at, name = gathered
            slots = self._chain_slots()
        except KvCacheError:
            return False

        def finish(reply: Reply) -> None:
            stage.give(at)
            result = None
            try:
                result = wire.put_result(reply.value())
            except Rejected as refused:
                if refused.of_chain:
                    slots.forget()
            except KvCacheError:
                pass  # nothing is known of it
            on_done(result)

        reply = Reply(time.monotonic() + self._client.timeout)
        reply.callback = finish
        request = (wire.PUT_STAGED, struct.pack("<II", index, 0) + name)
        try:
            slots.send(chain, self.namespace._number, index + 1, request, reply, None)
        except KvCacheError:
            reply.callback = None
            stage.give(at)
            return False
        return True

    def _put_arguments(self, chain: Chain, index: int, block: Block) -> Tuple[int, List[memoryview]]:
        self._check(chain)
        index = number_of("index", index, chain, len(chain) - 1)
        whole = isinstance(block, (bytes, bytearray, memoryview)) or not isinstance(block, Sequence)
        pieces = [memoryview(each).cast("B") for each in ((block,) if whole else block)]  # type: ignore[arg-type]
        size = sum(each.nbytes for each in pieces)
        if size != self.shape.block_bytes:
            raise ValueError(f"a block of {size} bytes; allowed: {self.shape.block_bytes}")
        return index, pieces

    def drop(self, chain: Chain, begin: int = 0) -> int:
        """Forgets the blocks of a chain from one on; returns how many there were.

        :param begin: 0 to the chain's length
        """
        self._check(chain)
        if number_of("begin", begin, chain, len(chain)) == len(chain):
            return 0
        return self._drop(chain, begin)

    def _drop(self, chain: Chain, begin: int, mark: bytes = b"") -> int:
        reply = self._request(chain, len(chain), wire.DROP_CHAIN, _U32.pack(begin) + mark)
        return int(_U32.unpack_from(reply)[0])

    def _chain_slots(self) -> ChainSlots:
        self._client._connected()
        slots = self._client._chain_slots
        assert slots is not None, "each connection has some"
        return slots

    def _check(self, chain: Chain) -> None:
        if not isinstance(chain, Chain):
            raise TypeError(f"chain is {type(chain).__name__}; allowed: a Chain of Blocks.chain or chain_of_keys")
        if chain.namespace != self.namespace.digest:
            raise ValueError("the chain is of another namespace")

    def _request(
        self,
        chain: Chain,
        length: int,
        kind: int,
        rest: bytes,
        payload: Optional[memoryview] = None,
        timeout: float = 0.0,
        follows: Optional[Callable[[bytes], bool]] = None,
        slots: Optional[ChainSlots] = None,
        pieces: Optional[List[memoryview]] = None,
    ) -> bytes:
        """Sends a request about a chain and waits. A server that did not keep the chain is told of it once more."""
        if slots is None:
            slots = self._chain_slots()
        seconds = timeout + self._client.timeout
        for last in (False, True):
            reply = Reply(time.monotonic() + seconds, follows=follows, pieces=pieces)
            slots.send(chain, self.namespace._number, length, (kind, rest), reply, payload)
            slots.connection.wait(reply, seconds)
            try:
                return reply.value()
            except Rejected as refused:
                if refused.of_chain:
                    slots.forget()
                if last or not refused.of_chain or refused.status != Status.BUSY:
                    raise
        raise AssertionError("unreachable")


def _is_arriving(begin: int, body: bytes) -> bool:
    """Whether PROGRESS follows a reply to ACQUIRE, or the PROGRESS before it."""
    lease, ready, end = _LEASED.unpack_from(body)
    return bool(lease != 0 and ready < end - begin)
