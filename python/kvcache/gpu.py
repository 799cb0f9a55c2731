"""Blocks between the server and an engine's memory on a GPU of the same host, copied by the server.

The engine tells where its KV pool lies on the device; then the server copies blocks to pages of it, and pages to blocks,
in the order of the engine's streams. ENGINES.md has the messages. This module calls NVIDIA's driver by ctypes, and needs
no framework; tensors of PyTorch are taken where the engine has them.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, List, Optional, Tuple, Union

from kvcache.blocks import Blocks
from kvcache.client import Client
from kvcache.errors import ConnectionLost, KvCacheError
from kvcache.shared import private_directory

_HELLO, _REGION, _EVENT, _POOL, _CHAIN, _LOAD, _STORE, _SEAL, _STEPS, _LOAD_LAYERS, _AWAIT_LAYERS, _ROOM = range(1, 13)
_DONE, _REJECTED = 100, 101
_VERSION = 1
_MESSAGE_BYTES = 65_536
_TOKEN_BYTES = 64
_MOST_CHAINS = 1024
_MOST_TOKENS = 15_000
"""In one message, so that it stays below the limit."""

_WITHOUT_TIMING = 2
_SHARED_EVENT = 4 | _WITHOUT_TIMING
_NON_BLOCKING = 1
_NOT_READY = 600
_MOST_WAIT_SECONDS = 10.0
_USUAL_STEPS = 16
_MAX_DEVICE = (1 << 31) - 1
_MOST_ROOM = (1 << 63) - 1

_u64, _int, _pointer, _size = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t


def _milliseconds(wait: float) -> int:
    if not 0 <= wait <= _MOST_WAIT_SECONDS:
        raise ValueError(f"wait = {wait}; allowed: 0 to {_MOST_WAIT_SECONDS:g} seconds")
    return int(wait * 1000)


class GpuError(KvCacheError):
    """NVIDIA's driver has rejected a call."""


class _Token(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * _TOKEN_BYTES)]


class Driver:
    """What this module needs of NVIDIA's driver, on one device, in the context that frameworks share.

    :param device: in the order of this process, as PyTorch counts
    """

    def __init__(self, device: int = 0, library: str = "libcuda.so.1") -> None:
        try:
            self._cuda = ctypes.CDLL(library)
        except OSError as missing:
            raise GpuError(f"{missing}; install NVIDIA's driver, or name its library") from None
        number, self._context = _int(), _pointer()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(number), device)
        uuid = ctypes.create_string_buffer(16)
        self._call("cuDeviceGetUuid_v2", uuid, number)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), number)
        self._number = number
        self.uuid = uuid.raw
        """Of the device, as the driver gives it."""

    def _call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._cuda, name)(*arguments)
        if result != 0:
            raise GpuError(f"{name}: error {result} of the driver")

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Makes the device's context the thread's own for a while."""
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._cuda.cuCtxPopCurrent_v2(ctypes.byref(_pointer()))

    def allocation(self, address: int) -> Tuple[int, int]:
        """Returns where the allocation around an address begins, and its bytes."""
        base, size = _u64(), _size()
        self._call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), _u64(address))
        return base.value, size.value

    def memory_token(self, base: int) -> bytes:
        """Returns what another process opens an allocation with."""
        token = _Token()
        try:
            self._call("cuIpcGetMemHandle", ctypes.byref(token), _u64(base))
        except GpuError as refused:
            raise GpuError(
                f"{refused}: memory at {base:#x} cannot be shared; turn off expandable segments and sleep mode, or pass its"
                " descriptor to region_from"
            ) from None
        return ctypes.string_at(ctypes.byref(token), _TOKEN_BYTES)

    def new_event(self) -> Tuple[int, bytes]:
        """Returns a new event and its token."""
        event, token = _pointer(), _Token()
        self._call("cuEventCreate", ctypes.byref(event), _SHARED_EVENT)
        self._call("cuIpcGetEventHandle", ctypes.byref(token), event)
        return event.value or 0, ctypes.string_at(ctypes.byref(token), _TOKEN_BYTES)

    def local_event(self) -> int:
        """Returns a new event of this process."""
        event = _pointer()
        self._call("cuEventCreate", ctypes.byref(event), _WITHOUT_TIMING)
        return event.value or 0

    def new_stream(self) -> int:
        """Returns a new stream, which does not wait for the default one."""
        stream = _pointer()
        self._call("cuStreamCreateWithPriority", ctypes.byref(stream), _NON_BLOCKING, 0)
        return stream.value or 0

    def close_stream(self, stream: int) -> None:
        self._cuda.cuStreamDestroy_v2(_pointer(stream))

    def open_event(self, token: bytes) -> int:
        """Returns the event of another process."""
        event, copy = _pointer(), _Token()
        ctypes.memmove(ctypes.byref(copy), token, _TOKEN_BYTES)
        call = self._cuda.cuIpcOpenEventHandle
        call.argtypes = [_pointer, _Token]
        result = call(ctypes.byref(event), copy)
        if result != 0:
            raise GpuError(f"cuIpcOpenEventHandle: error {result} of the driver")
        return event.value or 0

    def close_event(self, event: int) -> None:
        self._cuda.cuEventDestroy_v2(_pointer(event))

    def record(self, event: int, stream: int) -> None:
        self._call("cuEventRecord", _pointer(event), _pointer(stream))

    def wait_for(self, event: int, stream: int) -> None:
        """Has a stream wait for an event; returns at once."""
        self._call("cuStreamWaitEvent", _pointer(stream), _pointer(event), 0)

    def is_reached(self, event: int) -> bool:
        result = self._cuda.cuEventQuery(_pointer(event))
        if result not in (0, _NOT_READY):
            raise GpuError(f"cuEventQuery: error {result} of the driver")
        return bool(result == 0)

    def close(self) -> None:
        self._cuda.cuDevicePrimaryCtxRelease_v2(self._number)


class Region:
    """Memory of this process on the device, which the server has opened."""

    def __init__(self, number: int, base: int, size: int) -> None:
        self.number = number
        self.base = base
        """Its address here; 0 where only the server knows it by a descriptor."""
        self.size = size


Layer = Union[Tuple[Region, int, int], Tuple[int, int], Any]
"""Region, offset and bytes; or address and bytes; or a tensor that is contiguous."""


class GpuSession:
    """A connection to the server about one device.

    Threads: any; one request is on its way at a time. Calls return when a copy is queued, not when it is done: streams
    wait for that. A session that ends, as the server does, is not opened again: its memory must stay until ``close``.

    :param path: of the server's socket for this device
    :param driver: of the device; by default a new one, which is closed with this
    :param timeout: in seconds, of each request
    """

    def __init__(self, path: str, driver: Optional[Driver] = None, *, timeout: float = 60.0) -> None:
        self.path = path
        self._owns_driver = driver is None
        self.driver = driver or Driver()
        self._lock = threading.RLock()
        self._requests = 0
        self._regions: List[Region] = []
        self._chains: List[int] = list(range(_MOST_CHAINS - 1, -1, -1))
        self._events: List[int] = []
        self._side = 0
        """A stream that sees the end of each store, whatever is stored after it."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(timeout)
        try:
            try:
                self._socket.connect(path)
            except OSError as refused:
                raise ConnectionLost(f"{path}: {refused.strerror}") from None
            answer = self._ask(_HELLO, struct.pack("<i", _VERSION) + self.driver.uuid)
            with self.driver.current():
                self._loaded = self._own(self.driver.open_event(answer[8 : 8 + _TOKEN_BYTES]))
                self._stored = self._own(self.driver.open_event(answer[8 + _TOKEN_BYTES :][:_TOKEN_BYTES]))
                self._side = self.driver.new_stream()
                event, token = self.driver.new_event()
                self._event = self._own(event)
            (self._event_number,) = self._numbers(_EVENT, token)
        except BaseException:
            self.close()
            raise

    @classmethod
    def connect(
        cls, client: Client, device: int = 0, *, library: str = "libcuda.so.1", timeout: float = 60.0
    ) -> GpuSession:
        """Connects to the socket that a client's server has for a device.

        :param client: connected to a server of this host; its address alone is not enough
        :param device: from 0, in the order of this process; the server may count otherwise
        """
        if not isinstance(client, Client):
            raise TypeError(f"client is {type(client).__name__}; allowed: a Client")
        if not isinstance(device, int) or isinstance(device, bool):
            raise TypeError(f"device is {type(device).__name__}; allowed: an int of 0 or more")
        if not 0 <= device <= _MAX_DEVICE:
            raise ValueError(f"device = {device}; allowed: 0 to one less than this process's devices")
        client.connect()
        directory = client.shared_directory
        if directory is None:
            raise KvCacheError(
                "the server shares no memory with this process: engines connect on its host, as its user"
            )
        paths = sorted(glob.glob(os.path.join(glob.escape(private_directory(directory)), "gpu-*")))
        if not paths:
            raise KvCacheError(
                f"the server of {directory} uses no GPU; start it with --gpu DEVICE or --gpu DEVICE:SIZE, or"
                " use KvCacheCpuConnector for vLLM on a CPU"
            )
        driver = Driver(device, library)
        reasons = []
        for path in paths:
            try:
                session = cls(path, driver, timeout=timeout)
            except KvCacheError as refused:
                reasons.append(str(refused))
                continue
            session._owns_driver = True
            return session
        driver.close()
        raise KvCacheError(f"no socket of the server is for this device: {'; '.join(reasons)}")

    def _own(self, event: int) -> int:
        self._events.append(event)
        return event

    def _ask(self, kind: int, body: bytes, descriptors: Sequence[int] = ()) -> bytes:
        with self._lock:
            self._requests = request = (self._requests + 1) & 0x7FFFFFFF
            message = struct.pack("<ii", kind, request) + body
            if len(message) > _MESSAGE_BYTES:
                raise ValueError(
                    f"a request of {len(message)} bytes; allowed: up to {_MESSAGE_BYTES}; ask for less at once"
                )
            try:
                if descriptors:
                    socket.send_fds(self._socket, [message], list(descriptors))
                else:
                    self._socket.send(message)
                answer = self._socket.recv(_MESSAGE_BYTES)
            except socket.timeout:
                self._socket.close()  # what comes later would be taken for the reply to another request
                raise ConnectionLost(f"{self.path}: no reply in time") from None
            except OSError as lost:
                raise ConnectionLost(f"{self.path}: {lost.strerror or lost}") from None
        if len(answer) < 8:
            raise ConnectionLost(f"{self.path}: the server has ended the session; its log has the reason")
        outcome, number = struct.unpack_from("<ii", answer)
        if outcome == _REJECTED:
            raise KvCacheError(answer[8:].decode("utf-8", "replace"))
        if outcome != _DONE or number != request:
            raise ConnectionLost(f"{self.path}: the reply is of kind {outcome} to request {number}")
        return answer[8:]

    def _numbers(self, kind: int, body: bytes, descriptors: Sequence[int] = ()) -> Tuple[int, ...]:
        answer = self._ask(kind, body, descriptors)
        return struct.unpack(f"<{len(answer) // 8}q", answer)

    def region(self, address: int) -> Region:
        """Shows the server the allocation around an address; the same object for the same allocation."""
        with self._lock:
            for known in self._regions:
                if known.base <= address < known.base + known.size:
                    return known
            with self.driver.current():
                base, _ = self.driver.allocation(address)
                token = self.driver.memory_token(base)
            number, size = self._numbers(_REGION, struct.pack("<i", 0) + token)
            region = Region(number, base, size)
            self._regions.append(region)
            return region

    def region_from(self, descriptor: int, size: int) -> Region:
        """Shows the server memory of ``cuMemCreate`` by a descriptor, which the caller may close after this."""
        number, whole = self._numbers(_REGION, struct.pack("<iq", 1, size), [descriptor])
        return Region(number, 0, whole)

    def pool(
        self,
        namespace: Union[Blocks, bytes],
        layers: Sequence[Layer],
        *,
        sides: int,
        pages: int,
        piece_bytes: int,
        pages_per_block: int,
        page_stride: Optional[int] = None,
        side_stride: Optional[int] = None,
    ) -> Pool:
        """Describes the engine's paged KV pool.

        Piece ``(layer, side, page)`` begins at ``layer + side * side_stride + page * page_stride``.

        :param namespace: ``Blocks`` of the server, or the digest of a namespace that is registered there
        :param layers: memory of each layer, all of one size
        :param sides: 2 for keys and values, 1 for latents
        :param pages: of the pool
        :param piece_bytes: of one page, layer and side
        :param pages_per_block: of the engine's pages, in one block of the server
        :param page_stride: ``piece_bytes`` by default
        :param side_stride: all pages of a side by default
        """
        page_stride = piece_bytes if page_stride is None else page_stride
        side_stride = pages * page_stride if side_stride is None else side_stride
        digest = namespace if isinstance(namespace, bytes) else namespace.namespace.digest
        name = digest.hex().encode()
        body = struct.pack("<i", len(name)) + name
        body += struct.pack("<iiii", len(layers), sides, pages, pages_per_block)
        body += struct.pack("<qqq", side_stride, page_stride, piece_bytes)
        for layer in layers:
            body += struct.pack("<qqq", *self._place(layer))
        number, tokens = self._numbers(_POOL, body)
        return Pool(self, number, tokens, pages_per_block, len(layers))

    def _place(self, layer: Layer) -> Tuple[int, int, int]:
        if isinstance(layer, tuple) and len(layer) == 3:
            region, offset, size = layer
            return region.number, offset, size
        if isinstance(layer, tuple):
            address, size = layer
        else:
            if not layer.is_contiguous():
                raise ValueError("a layer is a tensor with gaps; allowed: one that is contiguous")
            address, size = layer.data_ptr(), layer.numel() * layer.element_size()
        region = self.region(address)
        return region.number, address - region.base, size

    def take_room(self, size: int, *, wait: float = 1.0) -> int:
        """Asks the server for room on the device: it gives memory of its tier back to the device.

        The room is this session's until ``return_room``, or until ``close``; then the tier takes it again.

        :param size: in bytes
        :param wait: in seconds, for blocks that are held
        :return: how many bytes more are free: all that was asked for and up to a part of the tier more, or less when
            the time is over
        :raises KvCacheError: when there are none; the message has the reason and what the tier may have
        """
        return self._room(size, 1, wait)

    def return_room(self, size: int, *, wait: float = 1.0) -> int:
        """Lets the tier take room again that ``take_room`` has returned, once the engine has freed it.

        :param size: in bytes; the tier takes whole parts, as it gave them
        :param wait: in seconds, for other requests of this kind
        :return: how many bytes the tier has taken: fewer when the device has no more
        """
        return self._room(size, -1, wait)

    def _room(self, size: int, sign: int, wait: float) -> int:
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= _MOST_ROOM:
            raise ValueError(f"size = {size}; allowed: an int of 1 and up, in bytes")
        given, _ = self._numbers(_ROOM, struct.pack("<qi", sign * size, _milliseconds(wait)))
        return sign * given

    def close(self) -> None:
        """Ends the session. The server completes copies on their way first; then the memory may go."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            while self._socket.recv(_MESSAGE_BYTES):
                pass
        self._socket.close()
        with contextlib.suppress(GpuError), self.driver.current():
            for event in self._events:
                self.driver.close_event(event)
            self._events.clear()
            if self._side:
                self.driver.close_stream(self._side)
                self._side = 0
        if self._owns_driver:
            self.driver.close()
            self._owns_driver = False

    def __enter__(self) -> GpuSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Pool:
    """An engine's pool of pages, as the server knows it."""

    def __init__(
        self, session: GpuSession, number: int, block_tokens: int, pages_per_block: int, layers: int
    ) -> None:
        self.session = session
        self.block_tokens = block_tokens
        """Tokens of a block."""
        self.pages_per_block = pages_per_block
        self.layers = layers
        self._number = number
        self._layers_a_step = 0
        self._copied: List[int] = []
        """An event for each step, once loads by layers were asked for."""

    def _prepare_steps(self) -> None:
        session = self.session
        with session._lock, session.driver.current():
            if not self._copied:
                answer = session._ask(_STEPS, struct.pack("<ii", self._number, min(self.layers, _USUAL_STEPS)))
                (self._layers_a_step,) = struct.unpack_from("<q", answer)
                for at in range(8, len(answer), _TOKEN_BYTES):
                    event = session.driver.open_event(answer[at : at + _TOKEN_BYTES])
                    self._copied.append(session._own(event))

    def chain(self, tokens: Sequence[int]) -> GpuChain:
        """Tells the server of a sequence. Close the chain when it ends: 1,024 may be open."""
        return GpuChain(self, tokens)


class Store:
    """Blocks on their way from pages to the server, which no one finds before ``seal``."""

    def __init__(self, session: GpuSession, number: int, blocks: int) -> None:
        self._session = session
        self._number = number
        driver = session.driver
        self._copied = session._own(driver.local_event())
        driver.wait_for(session._stored, session._side)
        driver.record(self._copied, session._side)
        self.blocks = blocks
        """Leading blocks that the server has or takes."""

    def order(self, stream: int) -> None:
        """Has a stream wait for the copy before its next work."""
        with self._session.driver.current():
            self._session.driver.wait_for(self._copied, stream)

    def is_copied(self) -> bool:
        """Whether the pages may be written again."""
        with self._session.driver.current():
            return self._session.driver.is_reached(self._copied)

    def seal(self, timeout: float = 10.0) -> int:
        """Waits for the copy and makes the blocks findable; returns how many were new.

        Call it once the engine's own work on these pages has succeeded. Without it they are discarded.
        """
        end = time.monotonic() + timeout
        while not self.is_copied():
            if time.monotonic() > end:
                raise KvCacheError(f"the copy is not done within {timeout:g} s; it goes on")
            time.sleep(0.0002)
        session = self._session
        with session._lock, session.driver.current():
            (new,) = session._numbers(_SEAL, struct.pack("<i", self._number))
            session._events.remove(self._copied)
            session.driver.close_event(self._copied)
        return new


class LayeredLoad:
    """Blocks on their way to pages layer by layer: those of a disk are copied as their layers come."""

    def __init__(self, pool: Pool, numbers: Tuple[int, ...]) -> None:
        self._pool = pool
        self.blocks, self._number, self._queued = numbers
        """Leading blocks that come or have come. It gets less when one does not come after all: what the pages of those
        behind it hold is of no use then, and what was computed with them neither. It is final after the last layer."""

    def order(self, layer: int, stream: int) -> None:
        """Has a stream wait for a layer, and those before it, before its next work.

        Returns when the layer's copy is queued, which takes as long as the layer is on its way from a disk.
        """
        if not 0 <= layer < self._pool.layers:
            raise ValueError(f"layer = {layer}; allowed: 0 to {self._pool.layers - 1}")
        session = self._pool.session
        step = layer // self._pool._layers_a_step
        with session._lock, session.driver.current():
            if step >= self._queued:
                asked = struct.pack("<ii", self._number, step + 1)
                self.blocks, self._queued = session._numbers(_AWAIT_LAYERS, asked)
            session.driver.wait_for(self._pool._copied[step], stream)

    def finish(self, stream: int) -> int:
        """Has a stream wait for all layers; returns how many leading blocks have come."""
        self.order(self._pool.layers - 1, stream)
        return self.blocks


class GpuChain:
    """A sequence of tokens, and its blocks in the server and in pages of the engine."""

    def __init__(self, pool: Pool, tokens: Sequence[int]) -> None:
        self._pool = pool
        with pool.session._lock:
            if not pool.session._chains:
                raise KvCacheError(f"{_MOST_CHAINS} chains are open; close some")
            self._number = pool.session._chains.pop()
        self._rest: List[int] = []
        self.blocks = 0
        """Full blocks of the sequence."""
        self.present = 0
        """Leading blocks that the server had when the chain last changed."""
        try:
            self._tell(0, tokens)
        except BaseException:
            self.close()
            raise

    def extend(self, tokens: Sequence[int]) -> None:
        """Appends tokens."""
        self._tell(self.blocks, [*self._rest, *tokens])

    def _tell(self, kept: int, tokens: Sequence[int]) -> None:
        size = self._pool.block_tokens
        part = max(1, _MOST_TOKENS // size) * size
        at = 0
        while True:
            some = tokens[at : at + part]
            body = struct.pack(f"<iiii{len(some)}i", self._number, self._pool._number, kept, len(some), *some)
            self.blocks, self.present = self._pool.session._numbers(_CHAIN, body)
            at += part
            if at >= len(tokens):
                break
            kept = self.blocks
        self._rest = list(tokens[len(tokens) // size * size :])

    def load(self, pages: Sequence[int], first: int = 0, *, stream: int = 0, wait: float = 0.0) -> int:
        """Has the server copy blocks into pages; the stream waits for it before its next work.

        :param pages: of the blocks from ``first`` on, block by block; the stream's earlier work on them comes first
        :param stream: of the driver, as ``torch.cuda.current_stream().cuda_stream``
        :param wait: seconds for blocks that are on a disk, ten at most
        :return: how many leading blocks are copied; pages of the others stay as they are
        """
        session = self._pool.session
        request = self._transfer(pages, first, wait)
        with session._lock, session.driver.current():
            session.driver.record(session._event, stream)
            (blocks,) = session._numbers(_LOAD, request)
            if blocks:
                session.driver.wait_for(session._loaded, stream)
        return blocks

    def load_layers(
        self, pages: Sequence[int], first: int = 0, *, stream: int = 0, wait: float = 0.0
    ) -> Optional[LayeredLoad]:
        """As ``load``, layer by layer: the stream waits for none until ``LayeredLoad.order`` or ``finish``.

        :return: None when no block comes
        """
        session = self._pool.session
        self._pool._prepare_steps()
        request = self._transfer(pages, first, wait)
        with session._lock, session.driver.current():
            session.driver.record(session._event, stream)
            numbers = session._numbers(_LOAD_LAYERS, request)
        return LayeredLoad(self._pool, numbers) if numbers[0] else None

    def store(self, pages: Sequence[int], first: int = 0, *, stream: int = 0, wait: float = 0.0) -> Store:
        """Has the server copy pages into blocks, after what the stream has queued before.

        The pages must not be written until ``Store.is_copied``.

        :param wait: seconds for room, for all blocks together
        """
        session = self._pool.session
        request = self._transfer(pages, first, wait)
        with session._lock, session.driver.current():
            session.driver.record(session._event, stream)
            blocks, number = session._numbers(_STORE, request)
            return Store(session, number, blocks)

    def _transfer(self, pages: Sequence[int], first: int, wait: float) -> bytes:
        each = self._pool.pages_per_block
        if not pages or len(pages) % each:
            raise ValueError(f"{len(pages)} pages; allowed: {each} for each block, and at least one block")
        event = self._pool.session._event_number
        head = struct.pack("<iiiii", self._number, first, len(pages) // each, event, _milliseconds(wait))
        return head + struct.pack(f"<{len(pages)}i", *pages)

    def close(self) -> None:
        """Lets another chain take its number."""
        if self._number >= 0:
            self._pool.session._chains.append(self._number)
            self._number = -1
