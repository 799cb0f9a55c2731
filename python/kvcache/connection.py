"""One connection to a server: frames out and in, without a thread of its own."""

from __future__ import annotations

import collections
import hmac
import logging
import os
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Sequence
from typing import Callable, Deque, Dict, List, Optional, Tuple

from kvcache import wire
from kvcache.errors import ConnectionLost, KvCacheError, Rejected, Status

logger = logging.getLogger(__name__)

_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_BUFFER_BYTES = 256 << 10
_JOINED_BUFFER_BYTES = 4 << 10


class Reply:
    """A request on its way. ``done`` is set once, after ``status``, ``body`` and ``data``.

    :param into: where a payload goes, if it has that size
    :param follows: tells by the body whether a payload follows in a frame of its own, or progress of a lease
    :param pieces: where payloads go if several may follow; ``follows`` then tells after each whether another does
    :param holds: whether the server uses memory of this process until the reply, the end of the connection, or the
        deadline
    """

    __slots__ = ("body", "callback", "data", "deadline", "done", "error", "follows", "holds", "into", "pieces", "status")

    def __init__(
        self,
        deadline: float,
        into: Optional[memoryview] = None,
        follows: Optional[Callable[[bytes], bool]] = None,
        holds: bool = False,
        pieces: Optional[List[memoryview]] = None,
    ) -> None:
        self.done = False
        self.status = Status.FAILED
        self.body = b""
        self.data: Optional[memoryview] = None
        self.error: Optional[KvCacheError] = None
        self.deadline = deadline
        self.into = into
        self.follows = follows
        self.holds = holds
        self.pieces = pieces
        self.callback: Optional[Callable[[Reply], None]] = None

    def value(self) -> bytes:
        """Returns the body of a reply that is done, or raises what went wrong."""
        if self.error is not None:
            raise self.error
        if self.status != Status.OK:
            text, end = wire.read_text(self.body, 0)
            raise Rejected(self.status, text, self.body[end : end + 1] == b"\1")
        return self.body


class Connection:
    """Sends requests and matches replies.

    Threads: any. A thread that waits for a reply reads for all of them; without one, ``poll`` reads what is there.

    A connection that this side gives up ends its sending only. The server lets go of this process's memory and closes;
    until then, or until their deadline, requests that hold memory are not done, and ``poll`` goes on reading.
    """

    def __init__(
        self,
        address: Tuple[str, int],
        tenant: str,
        secret: Optional[bytes],
        context: Optional[ssl.SSLContext],
        timeout: float,
        joins: bytes = bytes(24),
        program: str = "",
    ) -> None:
        """Connects.

        :param joins: ``session`` of the connection whose session this one joins; zeros to begin one
        :param program: and its version, which the server's operators see
        """
        self.session = joins
        """Number and ticket, by which further connections join."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._reading = False
        self._out: Deque[memoryview] = collections.deque()
        self._replies: Dict[int, Reply] = {}
        self._number = 0
        # What follows a header in the buffer is copied once more: little where values are large.
        self._buffer = bytearray(_JOINED_BUFFER_BYTES if any(joins) else _BUFFER_BYTES)
        self._begin = 0
        self._end = 0
        self._failed: List[Reply] = []
        self._process = os.getpid()
        self._reader = 0
        self.ended = False
        self.lost: Optional[ConnectionLost] = None
        try:
            sock = socket.create_connection(address, timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                sock = context.wrap_socket(sock, server_hostname=address[0])
        except OSError as failed:
            raise ConnectionLost(f"no server at {address[0]}:{address[1]}: {failed}") from failed
        self._socket = sock
        sock.setblocking(False)
        # Of the kernel's, so that a thread that waits hears when another one has left something to send.
        self._poll = select.epoll()
        self._poll.register(sock, select.EPOLLIN)
        self._polls_to_send = False
        try:
            self._handshake(tenant, secret, program, timeout)
        except ConnectionLost as lost:
            self.close()
            raise ConnectionLost(
                f"no session at {address[0]}:{address[1]}: {lost}; is it the server's transport.listen (7420 by default)?"
            ) from lost
        except BaseException:
            self.close()
            raise

    def _handshake(self, tenant: str, secret: Optional[bytes], program: str, timeout: float) -> None:
        nonce = os.urandom(32)
        number, ticket = self.session[:8], self.session[8:]
        hello = struct.pack("<HHI8sQ", 1, 0, 0, number, wire.SHARED_MEMORY) + nonce + ticket
        hello += wire.text(tenant) + wire.text(program)
        challenge = self.request(wire.HELLO, hello, timeout)
        asks_proof = struct.unpack_from("<H", challenge, 2)[0] == 1
        (self.capabilities,) = struct.unpack_from("<Q", challenge, 8)
        said = nonce + challenge[16:48] + number + tenant.encode()
        if asks_proof and secret is None:
            raise KvCacheError("the server asks for a secret; pass secret=")
        proof = bytes(32)
        if asks_proof and secret is not None:
            proof = hmac.new(secret, b"kvcache client v1" + said, "sha256").digest()
        welcome = self.request(wire.AUTH, proof, timeout)
        self.session = welcome[:24]
        (lease_millis,) = struct.unpack_from("<I", welcome, 24)
        self.lease_seconds = lease_millis / 1000
        if secret is not None:
            mine = hmac.new(secret, b"kvcache server v1" + said, "sha256").digest()
            if not hmac.compare_digest(mine, welcome[32:64]):
                asked = "the server does not know the secret" if asks_proof else "the server has no secret; leave it out"
                raise KvCacheError(asked)

    def fileno(self) -> int:
        """The descriptor that becomes readable when a reply arrives."""
        return self._socket.fileno()

    def send(
        self,
        kind: int,
        body: bytes,
        reply: Optional[Reply],
        payload: Optional[memoryview] = None,
        deadline_nanos: int = 0,
        more: Sequence[memoryview] = (),
    ) -> None:
        """Sends a request, without waiting: what the socket does not take now goes with later calls.

        :param payload: not to be changed until the reply is done
        :param more: of the payload, behind that
        """
        if os.getpid() != self._process:
            raise KvCacheError("this client belongs to the process that forked; make another one after the fork")
        with self._lock:
            if self.lost is not None:
                raise self.lost
            self._number += 1
            number = self._number if reply is not None else 0
            size = (0 if payload is None else payload.nbytes) + sum(each.nbytes for each in more)
            head = wire.header(kind, number, len(body), size, deadline_nanos)
            if reply is not None:
                self._replies[number] = reply
            self._out.append(memoryview(head + body))
            if payload is not None and size:
                self._out.append(payload.cast("B"))
            self._out.extend(more)
            self._flush()
        self._settle()

    def _buffered(self) -> bool:
        """Whether TLS has bytes that the descriptor does not tell of."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _flush(self) -> None:
        """Sends what the socket takes; the lock is held."""
        try:
            while self._out:
                part = self._out[0]
                sent = self._socket.send(part)
                if sent == part.nbytes:
                    self._out.popleft()
                else:
                    self._out[0] = part[sent:]
        except _WOULD_BLOCK:
            pass
        except OSError as failed:
            self._lose(f"the connection has ended: {failed}", True)
            return
        self._watch()

    def _watch(self) -> None:
        """Has a thread that waits wake up when the socket takes more of what is left to send; the lock is held."""
        if bool(self._out) != self._polls_to_send:
            self._polls_to_send = bool(self._out)
            self._poll.modify(self._socket, select.EPOLLIN | (select.EPOLLOUT if self._out else 0))

    def request(
        self,
        kind: int,
        body: bytes,
        timeout: float,
        payload: Optional[memoryview] = None,
        reply: Optional[Reply] = None,
    ) -> bytes:
        """Sends a request and waits for the body of its reply."""
        if reply is None:
            reply = Reply(time.monotonic() + timeout)
        self.send(kind, body, reply, payload, int(timeout * 1e9))
        self.wait(reply, timeout)
        return reply.value()

    def wait(self, reply: Reply, timeout: float, gives_up: bool = True) -> None:
        """Waits until a reply is done.

        :param gives_up: whether a reply that takes too long costs the connection, as its state is not known
        """
        if not reply.done and self._reader == threading.get_ident():
            raise KvCacheError("a callback may not wait for the server; use a method that begins with submit")
        end = time.monotonic() + timeout
        while not reply.done:
            with self._lock:
                while self._reading and not reply.done:
                    self._changed.wait(max(0.0, end - time.monotonic()))
                    if time.monotonic() > end:
                        break
                if reply.done:
                    return
                if not self._reading:
                    self._reading = True
                    reads = True
                else:
                    reads = False
            if reads:
                try:
                    while not reply.done and time.monotonic() < end:
                        self._pump(end - time.monotonic())
                finally:
                    with self._lock:
                        self._reading = False
                        self._changed.notify_all()
            if not reply.done and time.monotonic() >= end:
                if not gives_up:
                    return
                self.fail(f"no reply within {timeout:g} s")

    def poll(self) -> None:
        """Takes what has arrived and sends what waits, without waiting."""
        with self._lock:
            if self._reading or self.ended:
                return
            self._reading = True
        try:
            self._pump(0)
        finally:
            with self._lock:
                self._reading = False
                self._changed.notify_all()
        now = time.monotonic()
        with self._lock:
            overdue = [number for number, each in self._replies.items() if each.deadline < now]
            for number in overdue:
                self._failed.append(self._replies.pop(number))
        if overdue:
            self.fail("no reply in time")

    def _pump(self, timeout: float) -> None:
        """Sends and receives once; only the one thread that is reading calls it."""
        finished: List[Reply] = []
        try:
            with self._lock:
                if self.lost is None:
                    self._flush()
                if self.ended:
                    return
            if timeout > 0 and not self._buffered() and not self._poll.poll(min(timeout, 3600)):
                return
            self._receive(finished)
        except _WOULD_BLOCK:
            pass
        except OSError as failed:
            self.fail(f"the connection has ended: {failed}", True)
        except (ValueError, TypeError, struct.error) as failed:
            self.fail(f"the connection has ended: {failed}")
        finally:
            self._reader = threading.get_ident()
            try:
                for reply in finished:
                    _finish(reply)
                self._settle()
            finally:
                self._reader = 0
            if finished:
                with self._lock:
                    self._changed.notify_all()

    def _receive(self, finished: List[Reply]) -> None:
        while True:
            if self._end == len(self._buffer):
                self._compact()
            count = self._socket.recv_into(memoryview(self._buffer)[self._end :])
            if count == 0:
                self.fail("the server has closed the connection", True)
                return
            self._end += count
            self._parse(finished)
            if self._end < len(self._buffer) // 2 and not self._buffered():
                return

    def _compact(self) -> None:
        length = self._end - self._begin
        self._buffer[:length] = self._buffer[self._begin : self._end]
        self._begin, self._end = 0, length

    def _parse(self, finished: List[Reply]) -> None:
        while self._end - self._begin >= wire.HEADER_BYTES:
            magic, kind, _, number, body, payload, status = wire.HEADER.unpack_from(self._buffer, self._begin)
            if magic != wire.MAGIC or body > wire.MAX_BODY_BYTES or payload > wire.MAX_PAYLOAD_BYTES:
                raise ValueError("the bytes are not a frame of this protocol")
            need = wire.HEADER_BYTES + body
            if self._end - self._begin < need:
                if need > len(self._buffer) - self._begin:
                    self._compact()
                    if need > len(self._buffer):
                        self._buffer.extend(bytes(need))
                return
            begin = self._begin + wire.HEADER_BYTES
            content = bytes(self._buffer[begin : begin + body])
            self._begin += need
            if kind == wire.ERROR:
                raise ValueError(wire.read_text(content, 0)[0])
            with self._lock:
                if kind == wire.PROGRESS:  # of the lease that a reply has begun with
                    number = next((each for each, has in self._replies.items() if has.body[:8] == content[:8]), 0)
                reply = self._replies.get(number)
            data = self._payload(payload, reply) if payload else None
            if reply is not None:
                self._take(number, reply, kind, status, content, data, finished)
        some = bytes(self._buffer[self._begin : min(self._end, self._begin + len(wire.MAGIC))])
        if not wire.MAGIC.startswith(some):  # a line of another protocol may be shorter than a header
            raise ValueError("the bytes are not a frame of this protocol")
        if self._begin == self._end:
            self._begin = self._end = 0

    def _payload(self, size: int, reply: Optional[Reply]) -> memoryview:
        """Receives a payload, where the reply wants it if it fits; blocks until it is there."""
        into = reply.into if reply is not None else None
        target = into if into is not None and into.nbytes == size else memoryview(bytearray(size))
        target = target.cast("B")
        there = min(size, self._end - self._begin)
        target[:there] = memoryview(self._buffer)[self._begin : self._begin + there]
        self._begin += there
        while there < size:
            try:
                count = self._socket.recv_into(target[there:])
                if count == 0:
                    raise ConnectionResetError("the server has closed the connection")
                there += count
            except _WOULD_BLOCK:
                left = (reply.deadline if reply is not None else time.monotonic() + 10) - time.monotonic()
                if left <= 0:
                    raise ValueError("a payload did not arrive in time") from None
                with self._lock:
                    if self.lost is None:
                        self._flush()
                if not self._buffered():
                    self._poll.poll(left)
        return target

    def _take(
        self,
        number: int,
        reply: Reply,
        kind: int,
        status: int,
        body: bytes,
        data: Optional[memoryview],
        finished: List[Reply],
    ) -> None:
        if kind == wire.DATA:
            reply.data = data
            if reply.pieces is not None and data is not None:
                reply.pieces.append(data)
                if reply.follows is not None and reply.follows(reply.body):
                    return
        else:
            reply.status = Status.of(status)
            reply.body = body
            if reply.status == Status.OK and reply.follows is not None and reply.follows(body):
                return
        with self._lock:
            self._replies.pop(number, None)
        finished.append(reply)

    def fail(self, why: str, ended: bool = False) -> None:
        """Gives the connection up. Requests without a reply fail, those that hold memory when the server has let go.

        :param ended: whether the server has closed it, or is gone
        """
        with self._lock:
            self._lose(why, ended)
        self._settle()

    def _lose(self, why: str, ended: bool) -> None:
        """The same with the lock held; `_settle` does the rest without it."""
        if self.lost is None:
            self.lost = ConnectionLost(why)
        self._out.clear()
        if not self._poll.closed:
            self._watch()
        held = {number: reply for number, reply in self._replies.items() if reply.holds and not ended}
        self._failed.extend(reply for number, reply in self._replies.items() if number not in held)
        self._replies.clear()
        self._replies.update(held)
        self.ended = self.ended or ended or not held
        try:
            self._socket.shutdown(socket.SHUT_RDWR if self.ended else socket.SHUT_WR)
        except OSError:
            pass

    def _settle(self) -> None:
        """Finishes the requests that failed with the connection."""
        if not self._failed:
            return
        with self._lock:
            failed, self._failed = self._failed, []
        for reply in failed:
            reply.error = self.lost
            _finish(reply)
        with self._lock:
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the session of this connection, and all that it holds. Waits until the server has let go of memory."""
        if os.getpid() != self._process:
            self._socket.close()
            self._poll.close()
            return
        self.fail("the client is closed")
        while not self.ended and self._reader != threading.get_ident():
            self.poll()
            with self._lock:
                self.ended = self.ended or not self._replies
            time.sleep(0.0005)
        self._socket.close()
        self._poll.close()


def _finish(reply: Reply) -> None:
    reply.done = True
    callback, reply.callback = reply.callback, None
    if callback is not None:
        try:
            callback(reply)
        except Exception:
            logger.exception("a callback has failed")
