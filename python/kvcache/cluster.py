"""One cache over all servers of a cluster. Which server has what is computed, see ``kvcache.placement``."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import ssl
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Dict, Generic, List, NamedTuple, Optional, Tuple, TypeVar, Union

from kvcache import wire
from kvcache.blocks import Block, Blocks, BlockShape, Chain, Match, number_of
from kvcache.client import BaseClient, Client, Job, Namespace, Region, Span, check_callback, host_and_port, new_mark
from kvcache.errors import ConnectionLost, KvCacheError, Rejected, Status
from kvcache.mover import Mover, Piece, Value, check_pieces
from kvcache.placement import Node, Placement, group_bounds, groups_layout, slot
from kvcache.wire import Result

logger = logging.getLogger(__name__)

_WATCH_SECONDS = 2.0
"""After which a server answers that its view has not changed."""

_SILENT_SECONDS = 4.0
"""How much longer it may take before another server is asked."""

_DROPPED_SECONDS = 1.0
"""How long a server that a view lacks may take to show that it knows more servers."""

_PAUSE_SECONDS = 0.1
_CONNECT_SECONDS = 1.0
"""How long a first connection to every server is waited for, once one of them is connected."""

_THREADS = 8
"""That ask servers beside the caller."""

_SERVING = 1
_LAYOUT = 3
"""Where the layout is in a namespace's fields."""

_VIEW = struct.Struct("<QQI")
_NODE = struct.Struct("<QBdQ")
_U16 = struct.Struct("<H")

_T = TypeVar("_T")
_P = TypeVar("_P")


class Server(NamedTuple):
    """A server of a view."""

    address: str
    node: Node
    serving: bool


class View(NamedTuple):
    """The servers of a cluster, as one of them knows them."""

    cluster: str
    digest: int
    servers: List[Server]

    @property
    def serving(self) -> List[Server]:
        """Those that own blocks and values."""
        return [each for each in self.servers if each.serving]


def _read_view(body: bytes) -> View:
    cluster, at = wire.read_text(body, 0)
    _, digest, count = _VIEW.unpack_from(body, at)
    at += _VIEW.size
    servers = []
    for _ in range(count):
        (size,) = _U16.unpack_from(body, at)
        _, state, weight, _ = _NODE.unpack_from(body, at + 2)
        name, begin = wire.read_text(body, at + 2 + _NODE.size)
        zone, begin = wire.read_text(body, begin)
        host, begin = wire.read_text(body, begin)
        address, _ = wire.read_text(body, begin)
        servers.append(Server(address, Node(name, weight, zone, host), state == _SERVING))
        at += 2 + size
    return View(cluster, digest, servers)


class _Route:
    """A view, and the clients of its servers. A call uses one route from its begin to its end."""

    def __init__(self, view: View, clients: Dict[str, Client]) -> None:
        self.view = view
        self.all = list(clients.values())
        self.serving = [clients[each.address] for each in view.serving]
        self._placement = Placement(view.cluster, [each.node for each in view.serving])

    def of_group(self, key: bytes) -> Optional[Client]:
        """Returns the owner of a group, or the next server in its order that is connected, which will own it."""
        servers = (self.serving[node] for node in self._placement.order(key))
        return next((each for each in servers if each.connected), None)

    def of_value(self, key: bytes) -> Optional[Client]:
        """Returns the owner of a value, if it is connected. No other one takes its place: a value may be replaced."""
        owner = self.serving[self._placement.slot_owner(slot(key))] if self.serving else None
        return owner if owner is not None and owner.connected else None


_NO_ROUTE = _Route(View("", 0, []), {})


class ClusterClient(BaseClient):
    """A session with each server of a cluster.

    It learns the servers from one of them, and follows them as they join, drain and die. A server that is dead or
    silent is a miss: blocks are then found and put at the next server in their order, values are absent, and puts of
    them have no room. Calls raise ``ConnectionLost`` only where no server is connected, and where they promise
    something of all: drops and deletions.

    Memory is shared with the servers of this host; others are sent to. There are no regions: ``open_mover`` moves
    pages through regions of the servers that map them. Blocks are read at their owners, not at copies.

    Threads: any, as with ``Client``.

    :param addresses: of one server or more, with commas between them or as a list; the others are learned
    """

    def __init__(
        self,
        addresses: Union[str, Sequence[str]],
        *,
        tenant: str = "",
        secret: Optional[bytes] = None,
        tls: Union[bool, ssl.SSLContext] = False,
        timeout: float = 10.0,
        lazy: bool = False,
        program: str = "",
    ) -> None:
        self._seeds = _addresses(addresses)
        self.tenant = tenant
        self.timeout = timeout
        self._tls = tls
        self._options: Dict[str, Any] = {"tenant": tenant, "secret": secret, "timeout": timeout, "program": program}
        self._lock = threading.RLock()
        self._route = _NO_ROUTE
        self._retired: List[Tuple[Client, float]] = []
        self._namespaces: Dict[Tuple[Tuple[str, ...], Optional[BlockShape]], ClusterNamespace] = {}
        self._movers: weakref.WeakSet[ClusterMover] = weakref.WeakSet()
        self._watched = False
        self._followed = 0
        """Of the connected servers, the one whose view is followed; another one after it has failed."""
        self._closed = threading.Event()
        self._threads: Optional[concurrent.futures.ThreadPoolExecutor] = None
        try:
            if not lazy:
                self.connect()
        except BaseException:
            self.close()
            raise
        self._follower = threading.Thread(target=self._follow, name="kvcache-cluster", daemon=True)
        self._follower.start()

    def __repr__(self) -> str:
        connected = sum(each.connected for each in self._route.all)
        state = "closed" if self._closed.is_set() else f"{connected} of {len(self._route.all)} servers connected"
        tenant = f", tenant {self.tenant!r}" if self.tenant else ""
        return f"<ClusterClient of {self._route.view.cluster or self.server}{tenant}, {state}>"

    @property
    def server(self) -> str:
        """``host:port`` of each server, with commas between them."""
        return ", ".join(each.server for each in self._route.all) or ", ".join(self._seeds)

    @property
    def view(self) -> View:
        """The servers as this client knows them; none before the first one has answered."""
        return self._route.view

    @property
    def connected(self) -> bool:
        """Whether there is a session with a server that owns something."""
        return any(each.connected for each in self._route.serving)

    @property
    def shares_memory(self) -> bool:
        """Whether the indexes of all servers that own something are mapped."""
        return bool(self._route.serving) and all(each.shares_memory for each in self._route.serving)

    def connect(self) -> None:
        """Connects now where no server is; waits a second at most for the others. Raises why none is reached."""
        begin = time.monotonic()
        if not self._route.all:
            self._use(self._ask_seeds())
        serving = self._route.serving
        while not all(each.connected or each._failure for each in serving):
            self._check_open()
            if time.monotonic() > begin + _CONNECT_SECONDS:
                break
            self._closed.wait(0.005)
        failure: Optional[KvCacheError] = None
        for each in () if self.connected else serving:
            try:
                each.connect()
                return
            except KvCacheError as failed:
                failure = failed
            if time.monotonic() > begin + self.timeout:
                break
        if not self.connected:
            raise ConnectionLost(f"no server that serves the cluster is reached: {self.server}") from failure

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ConnectionLost("the client is closed")

    def check_connected(self) -> None:
        """Raises ``ConnectionLost`` where no server is connected, after a while to connect."""
        if not self.connected:
            self.connect()

    def _ask_seeds(self) -> View:
        self._check_open()
        failures: List[KvCacheError] = []
        for seed in self._seeds:
            try:
                with self._client(seed, False) as client:
                    view = _ask(client, client._connected(), 0, 0)
                    if view is not None:
                        return view
            except Rejected as refused:
                if refused.status != Status.UNSUPPORTED:
                    raise
                failures.append(KvCacheError(f"{seed} is in no cluster; name one server, without a comma, to use it alone"))
            except ConnectionLost as lost:
                failures.append(lost)
        if len(failures) == 1:
            raise failures[0]
        raise type(failures[0])("; ".join(map(str, failures)))

    def _client(self, address: str, lazy: bool) -> Client:
        tls = address.startswith("tls:")
        return Client(address[4:] if tls else address, tls=self._tls or tls, lazy=lazy, **self._options)

    def _use(self, view: View) -> None:
        """Makes the route of a view, with sessions with new servers.

        What waits for a server that is gone ends now, its session a bit later.
        """
        with self._lock:
            self._check_open()
            before = {each.address: client for each, client in zip(self._route.view.servers, self._route.all)}
            clients: Dict[str, Client] = {}
            for each in view.servers:
                client = before.pop(each.address, None)
                if client is None:
                    client = self._client(each.address, True)
                    self._open(client)
                clients[each.address] = client
            self._route = _Route(view, clients)
            end = time.monotonic() + self.timeout + _CONNECT_SECONDS
            self._retired += [(client, end) for client in before.values()]
        for client in before.values():
            client._give_up("the server has left the cluster")
        serving = ", ".join(each.node.name for each in view.serving)
        logger.info("KVCache: the cluster %s is served by %s", view.cluster, serving)

    def _open(self, client: Client) -> None:
        """Makes a new server known to all that moves through it, before it is used."""
        for namespace in self._namespaces.values():
            namespace._open(client)
        for mover in list(self._movers):
            mover._open(client)
        if self._watched:
            client.watch()

    def _follow(self) -> None:
        """Follows the view until this client is closed."""
        failed_before = False
        while not self._closed.is_set():
            try:
                changed = self._next_view()
                if changed is not None:
                    self._use(changed)
                failed_before = False
            except KvCacheError as failed:
                if not failed_before and not self._closed.is_set():
                    logger.warning("KVCache: %s; the cluster's servers are asked again until one answers", failed)
                failed_before = True
            except Exception:
                logger.exception("the cluster's view is not followed; it is tried again")
            self._close_retired(time.monotonic())
            self._closed.wait(_PAUSE_SECONDS)

    def _next_view(self) -> Optional[View]:
        """Waits for another view; for the first one at the addresses that were given, or where no server is connected."""
        route = self._route
        connected = [each for each in route.all if each.connected]
        if not connected:
            return self._ask_seeds()
        client = connected[self._followed % len(connected)]
        view: Optional[View] = None
        try:
            # A connection of its own: replies to others are not taken by the thread that waits here.
            connection = client._join(client._connected())
            try:
                while view is None and self._route is route and not self._closed.is_set():
                    view = _ask(client, connection, route.view.digest, _WATCH_SECONDS)
            finally:
                connection.close()
        except KvCacheError as failed:
            self._followed += 1
            logger.debug("no view of %s: %s", client.server, failed)
            return None
        view = None if view is None else self._larger(view)
        return None if view is None or view.digest == route.view.digest else view

    def _larger(self, view: View) -> View:
        """Returns a view, or that of a server which it lacks, if this one has more: the first server was cut off then."""
        there = {each.address for each in view.servers}
        largest = view
        for each, client in zip(self._route.view.servers, self._route.all):
            if each.address not in there and client.connected:
                with contextlib.suppress(KvCacheError):
                    other = _ask(client, client._connected(), 0, 0, _DROPPED_SECONDS)
                    if other is not None and len(other.serving) > len(largest.serving):
                        largest = other
        return largest

    def _close_retired(self, now: float) -> None:
        with self._lock:
            ended = [client for client, end in self._retired if end <= now]
            self._retired = [(client, end) for client, end in self._retired if end > now]
            for client in ended:
                for namespace in self._namespaces.values():
                    namespace._at.pop(client, None)
        for client in ended:
            for mover in list(self._movers):
                mover._close_at(client)
            client.close()

    def _register(self, fields: Tuple[str, ...], shape: Optional[BlockShape]) -> ClusterNamespace:
        with self._lock:
            self._check_open()
            known = self._namespaces.get((fields, shape))
            if known is None:
                known = ClusterNamespace(self, fields, shape)
                for client in [*self._route.all, *(client for client, _ in self._retired)]:
                    known._open(client)
                self._namespaces[fields, shape] = known
            return known

    def _blocks(self, fields: Tuple[str, ...], shape: BlockShape) -> Blocks:
        whole = self._namespace(fields, shape)
        groups = (*fields[:_LAYOUT], groups_layout(fields[_LAYOUT]), *fields[_LAYOUT + 1 :])
        assert isinstance(whole, ClusterNamespace)
        return ClusterBlocks(self, whole, self._namespace(groups, shape), shape)

    def _each(self, parts: Sequence[_P], call: Callable[[_P], _T]) -> List[_T]:
        """Calls a function with each part, at the same time; the first one by this thread."""
        if len(parts) < 2:
            return [call(each) for each in parts]
        with self._lock:
            self._check_open()
            if self._threads is None:
                self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "kvcache-cluster-call")
            threads = self._threads
        others = [threads.submit(call, each) for each in parts[1:]]
        try:
            first = call(parts[0])
        finally:
            concurrent.futures.wait(others)
        return [first, *(each.result() for each in others)]

    def poll(self) -> None:
        """Takes the replies that have arrived, without waiting."""
        for each in self._route.all:
            each.poll()

    def watch(self) -> None:
        """Has threads take the replies as they arrive, so that jobs are done without calls of ``poll``."""
        with self._lock:
            if self._watched:
                return
            self._watched = True
            for each in self._route.all:
                each.watch()

    def close(self) -> None:
        """Ends all sessions, as ``Client.close`` does."""
        self._closed.set()
        with self._lock:
            clients = [*self._route.all, *(client for client, _ in self._retired)]
            self._retired = []
            threads = self._threads
        for each in clients:
            each.close()
        if threads is not None:
            threads.shutdown(wait=False)


def _addresses(addresses: Union[str, Sequence[str]]) -> List[str]:
    seeds = addresses.split(",") if isinstance(addresses, str) else list(addresses)
    if not all(isinstance(each, str) for each in seeds):
        raise TypeError(f"addresses = {addresses!r:.100}; allowed: a str, or a list of them")
    seeds = [each.strip() for each in seeds if each.strip()]
    for each in seeds:
        host_and_port(each)
    if not seeds:
        raise ValueError(f"addresses = {addresses!r:.100}; allowed: host:port of one server or more")
    return seeds


def _ask(
    client: Client, connection: Any, known: int, seconds: float, silent: float = _SILENT_SECONDS
) -> Optional[View]:
    """Returns a server's view, or None where it is the known one for so many seconds.

    :param silent: how much longer the server may take
    """
    timeout = seconds + min(client.timeout, silent)
    body = connection.request(wire.VIEW, struct.pack("<QQ", known, int(seconds * 1e9)), timeout)
    return _read_view(body[1:]) if body[0] else None


def _miss(nothing: _T, call: Callable[[], _T]) -> _T:
    """Calls a server. One that is gone, is going, or is silent has nothing."""
    try:
        return call()
    except ConnectionLost:
        return nothing
    except Rejected as refused:
        if refused.status in (Status.BUSY, Status.GONE, Status.FAILED):
            return nothing
        raise


class _Answers(Generic[_T]):
    """Collects answers that come in any thread; the last one ends it."""

    def __init__(self, count: int, done: Callable[[List[_T]], None]) -> None:
        self._lock = threading.Lock()
        self._count = count
        self._done = done
        self._answers: List[_T] = []

    def hear(self, answer: _T) -> None:
        """Takes one of the answers."""
        with self._lock:
            self._answers.append(answer)
            last = len(self._answers) == self._count
        if last:
            self._done(self._answers)


class ClusterNamespace(Namespace):
    """Values of one model, each at the server of its slot. Its servers do not move them when the cluster changes."""

    def __init__(self, cluster: ClusterClient, fields: Tuple[str, ...], shape: Optional[BlockShape]) -> None:
        super().__init__(cluster, fields, shape)  # type: ignore[arg-type]
        self._cluster = cluster
        self._at: Dict[Client, Namespace] = {}

    def _open(self, client: Client) -> None:
        """Registers it with a server, now or when that is connected."""
        for last in (False, True):
            try:
                self._at[client] = client._namespace(self.fields, self.shape)
                return
            except ConnectionLost:
                if last:
                    raise

    def _owner(self, key: bytes) -> Optional[Namespace]:
        """Returns the namespace at the server of a key, or None where that is not connected."""
        client = self._cluster._route.of_value(wire.key(key))
        return None if client is None else self._at.get(client)

    def _reached(self, key: bytes) -> Optional[Namespace]:
        """As ``_owner``; raises where no server at all is connected."""
        self._cluster.check_connected()
        return self._owner(key)

    def _by_owner(self, keys: Sequence[bytes]) -> Dict[Optional[Namespace], List[int]]:
        """Returns the indexes of keys by the namespaces at their servers; None for those that are not connected."""
        found: Dict[Optional[Namespace], List[int]] = {}
        for at, key in enumerate(keys):
            found.setdefault(self._owner(key), []).append(at)
        return found

    def contains(self, key: bytes) -> bool:
        owner = self._reached(key)
        return owner is not None and _miss(False, lambda: owner.contains(key))

    def contains_now(self, key: bytes) -> Optional[bool]:
        owner = self._owner(key)
        return False if owner is None else owner.contains_now(key)

    def match(self, keys: Sequence[bytes], pin_seconds: float = 0.0) -> int:
        self._cluster.check_connected()
        first_absent = len(keys)

        def ask(part: Tuple[Optional[Namespace], List[int]]) -> int:
            owner, numbers = part
            mine = [keys[at] for at in numbers]
            present = 0 if owner is None else _miss(0, lambda: owner.match(mine, pin_seconds))
            return numbers[present] if present < len(numbers) else first_absent

        return min(self._cluster._each(list(self._by_owner(keys).items()), ask), default=0)

    def submit_contains(self, key: bytes, callback: Callable[[Optional[bool]], None]) -> None:
        check_callback("callback", callback)
        owner = self._owner(key)
        if owner is None:
            callback(None)
        else:
            owner.submit_contains(key, callback)

    def submit_match(self, keys: Sequence[bytes], callback: Callable[[Optional[int]], None]) -> None:
        check_callback("callback", callback)
        parts = self._by_owner(keys)
        ends: _Answers[int] = _Answers(len(parts), lambda all_of_them: callback(min(all_of_them)))

        def hear(numbers: List[int], present: Optional[int]) -> None:
            here = present or 0
            ends.hear(numbers[here] if here < len(numbers) else len(keys))

        if not parts:
            callback(0)
        for owner, numbers in parts.items():
            if owner is None:
                hear(numbers, None)
            else:
                owner.submit_match(
                    [keys[at] for at in numbers], lambda present, numbers=numbers: hear(numbers, present)  # type: ignore[misc]
                )

    def get(self, key: bytes) -> Optional[bytearray]:
        owner = self._reached(key)
        return None if owner is None else _miss(None, lambda: owner.get(key))

    def get_into(self, key: bytes, into: memoryview) -> bool:
        owner = self._reached(key)
        return owner is not None and _miss(False, lambda: owner.get_into(key, into))

    @contextlib.contextmanager
    def view(self, key: bytes) -> Iterator[Optional[List[memoryview]]]:
        """As ``Namespace.view``, where the key's server shares its memory."""
        owner = self._reached(key)
        if owner is None:
            yield None
            return
        with owner.view(key) as pieces:
            yield pieces

    def put(self, key: bytes, value: Union[bytes, bytearray, memoryview]) -> Result:
        owner = self._reached(key)
        return Result.NO_ROOM if owner is None else _miss(Result.NO_ROOM, lambda: owner.put(key, value))

    def delete(self, key: bytes) -> bool:
        """As ``Namespace.delete``; raises ``ConnectionLost`` where the key's server is not connected."""
        owner = self._reached(key)
        if owner is None:
            raise ConnectionLost("the server of the value is not reached, and may keep it")
        return owner.delete(key)

    def delete_digests(self, digests: Sequence[bytes]) -> int:
        """As ``Namespace.delete_digests``, at all servers, as a digest does not show the slot."""
        return self._at_all(lambda at: at.delete_digests(digests))

    def _at_all(self, call: Callable[[Namespace], int]) -> int:
        """Calls all servers, and adds their answers up; raises what names those that did not answer."""
        self._cluster.check_connected()
        clients = self._cluster._route.all

        def at(client: Client) -> int:
            namespace = self._at.get(client)
            return -1 if namespace is None or not client.connected else _miss(-1, lambda: call(namespace))

        answers = self._cluster._each(clients, at)
        lost = ", ".join(client.server for client, answer in zip(clients, answers) if answer < 0)
        if lost:
            raise ConnectionLost(f"not reached, and may keep what was dropped: {lost}")
        return sum(answers)

    def listing(self) -> Dict[bytes, int]:
        found: Dict[bytes, int] = {}
        for each in self._connected():
            found.update(each.listing())
        return found

    def usage(self) -> Tuple[int, int]:
        usages = [each.usage() for each in self._connected()]
        return sum(live for live, _ in usages), sum(size for _, size in usages)

    def _connected(self) -> List[Namespace]:
        return [self._at[each] for each in self._cluster._route.all if each.connected and each in self._at]

    def _drop(self, mark: bytes) -> int:
        return self._at_all(lambda at: at._drop(mark))

    def _submit_drop(self, mark: bytes, callback: Callable[[bool], None]) -> None:
        clients = self._cluster._route.all
        answers: _Answers[bool] = _Answers(len(clients), lambda all_of_them: callback(all(all_of_them)))
        if not clients:
            callback(False)
        for client in clients:
            namespace = self._at.get(client)
            if namespace is None:
                answers.hear(False)
            else:
                namespace._submit_drop(mark, answers.hear)

    def submit_store(self, region: Region, values: Sequence[Tuple[bytes, Sequence[Span]]], *_: Any) -> Job:  # type: ignore[override]
        """Not in a cluster: a region is memory that one server maps. Use ``open_mover``."""
        raise KvCacheError("a cluster has no regions; move pages by kvcache.open_mover")

    submit_load = store = load = submit_store  # type: ignore[assignment]

    def _hint(self, kind: int, nanos: int, keys: Sequence[bytes], more: bytes = b"") -> None:
        for owner, numbers in self._by_owner(keys).items():
            if owner is not None:
                owner._hint(kind, nanos, [keys[at] for at in numbers], more)


class GroupedChain(Chain):
    """A chain of a cluster's blocks, and its groups as their servers know them."""

    def __init__(self, namespace: bytes, block_tokens: int, groups: bytes) -> None:
        super().__init__(namespace, block_tokens)
        self._groups_digest = groups
        self._groups: Dict[int, Chain] = {}

    def copy(self) -> GroupedChain:
        other = super().copy()
        assert isinstance(other, GroupedChain)
        other._groups = {}
        return other

    def set_hashes(self, hashes: Sequence[bytes], first: int = 0) -> None:
        super().set_hashes(hashes, first)
        self._groups.clear()  # they have copies

    def group(self, block: int) -> Tuple[int, int, Chain]:
        """Returns the first block of a block's group, the one behind its last here, and its chain."""
        first, end = group_bounds(block, self.block_tokens)
        end = min(end, len(self))
        chain = self._groups.get(first)
        if chain is None:
            chain = self._groups[first] = Chain(self._groups_digest, self.block_tokens)
        added = self.keys_and_hashes(first + len(chain), end)
        if added:
            step = len(added) // (end - first - len(chain))
            mask = (self._groups_digest[:16] + bytes(step - 16)) * (len(added) // step)
            mixed = int.from_bytes(added, "big") ^ int.from_bytes(mask, "big")
            chain._entries += mixed.to_bytes(len(added), "big")
        return first, end, chain


class _Part(NamedTuple):
    """Blocks of a chain that lie on one server."""

    blocks: Blocks
    chain: Chain
    first: int
    """Block of the whole chain with which the group begins."""
    begin: int
    end: int

    @property
    def count(self) -> int:
        return self.end - self.begin


class _Gathered(NamedTuple):
    """Leased blocks of several servers, in place of ``blocks.Leased``."""

    pieces: List[memoryview]
    parts: List[Tuple[int, Any]]
    """How many of the pieces are of each lease, and this."""

    def held(self) -> int:
        """How many of them have stayed in place until now."""
        total = 0
        for count, leased in self.parts:
            held = min(count, leased.held())
            total += held
            if held < count:
                break
        return total


class ClusterBlocks(Blocks):
    """Blocks of one model and shape in a cluster: a chain is cut into groups, each at one server.

    A put needs the block before it where that is of the same group.
    """

    def __init__(self, cluster: ClusterClient, whole: ClusterNamespace, groups: Namespace, shape: BlockShape) -> None:
        super().__init__(cluster, _GroupsNamespace(whole, groups), shape)  # type: ignore[arg-type]
        self._cluster = cluster
        assert isinstance(groups, ClusterNamespace)
        self._groups = groups

    def chain(self, tokens: Sequence[int] = ()) -> Chain:
        chain = GroupedChain(self.namespace.digest, self.shape.tokens, self._groups.digest)
        chain.extend(tokens)
        return chain

    def chain_of_keys(self, keys: Sequence[bytes]) -> Chain:
        chain = GroupedChain(self.namespace.digest, self.shape.tokens, self._groups.digest)
        chain.extend_keys(keys)
        return chain

    def _check(self, chain: Chain) -> None:
        super()._check(chain)
        if not isinstance(chain, GroupedChain):
            raise TypeError(f"chain is {type(chain).__name__}; allowed: one that these blocks made")

    def _parts(self, chain: Chain, begin: int, end: int) -> List[_Part]:
        """Cuts blocks into parts; ends before the first group of which no server is connected."""
        assert isinstance(chain, GroupedChain)
        self._cluster.check_connected()
        route = self._cluster._route
        parts: List[_Part] = []
        while begin < end:
            first, last, group = chain.group(begin)
            client = route.of_group(group.key(0))
            namespace = None if client is None else self._groups._at.get(client)
            if client is None or namespace is None:
                break
            last = min(last, end)
            parts.append(_Part(Blocks(client, namespace, self.shape), group, first, begin, last))
            begin = last
        return parts

    def match(self, chain: Chain) -> Match:
        self._check(chain)
        parts = self._parts(chain, 0, len(chain))
        nothing = Match(0, 0, 0)
        found = self._cluster._each(parts, lambda part: _miss(nothing, lambda: part.blocks.match(part.chain)))
        device = host = disk = 0
        for part, match in zip(parts, found):
            device, host, disk = device + match.device, host + match.host, disk + match.disk
            if match.blocks < part.count:
                break
        return Match(device, host, disk)

    @contextlib.contextmanager
    def _leased(self, chain: Chain, begin: int, end: Optional[int], timeout: float) -> Iterator[Any]:
        self._check(chain)
        begin, limit = self._bounds(chain, begin, end)
        wire.nanos(timeout, 86_400, "timeout")
        parts = self._parts(chain, begin, limit)

        def lease(part: _Part) -> Tuple[contextlib.ExitStack, Any]:
            stack = contextlib.ExitStack()
            context = part.blocks._leased(part.chain, part.begin - part.first, part.end - part.first, timeout)
            return stack, _miss(None, lambda: stack.enter_context(context))

        leases = self._cluster._each(parts, lease)
        with contextlib.ExitStack() as all_of_them:
            pieces: List[memoryview] = []
            taken: List[Tuple[int, Any]] = []
            for stack, _ in leases:
                all_of_them.push(stack)
            for part, (_, leased) in zip(parts, leases):
                if leased is not None:
                    pieces += leased.pieces
                    taken.append((len(leased.pieces), leased))
                if leased is None or len(leased.pieces) < part.count:
                    break
            yield _Gathered(pieces, taken)

    def get_range(
        self, chain: Chain, offset: int, size: int, begin: int = 0, end: Optional[int] = None, timeout: float = 0.0
    ) -> List[bytearray]:
        self._check(chain)
        self._byte_range(offset, size)
        begin, limit = self._bounds(chain, begin, end)
        wire.nanos(timeout, 86_400, "timeout")
        parts = self._parts(chain, begin, limit)

        def read(part: _Part) -> List[bytearray]:
            first, last = part.begin - part.first, part.end - part.first
            nothing: List[bytearray] = []
            return _miss(nothing, lambda: part.blocks.get_range(part.chain, offset, size, first, last, timeout))

        ranges: List[bytearray] = []
        for part, found in zip(parts, self._cluster._each(parts, read)):
            ranges += found
            if len(found) < part.count:
                break
        return ranges

    def put(self, chain: Chain, index: int, block: Block) -> Result:
        index, pieces = self._put_arguments(chain, index, block)
        for part in self._parts(chain, index, index + 1):
            return _miss(Result.NO_ROOM, lambda: part.blocks.put(part.chain, index - part.first, pieces))
        return Result.NO_ROOM

    def submit_put(
        self,
        chain: Chain,
        index: int,
        block: Block,
        on_done: Callable[[Optional[Result]], None],
        wait: float = 0.0,
    ) -> bool:
        index, pieces = self._put_arguments(chain, index, block)
        if not self._cluster.connected:
            return False
        for part in self._parts(chain, index, index + 1):
            return part.blocks.submit_put(part.chain, index - part.first, pieces, on_done, wait)
        return False

    def drop(self, chain: Chain, begin: int = 0) -> int:
        """As ``Blocks.drop``, at all servers; raises ``ConnectionLost`` that names those that did not answer.

        They hear of it from the other servers. A block counts at each server that had it or a copy.
        """
        self._check(chain)
        assert isinstance(chain, GroupedChain)
        start = number_of("begin", begin, chain, len(chain))
        mark = new_mark()
        groups: List[Tuple[Chain, int]] = []
        while start < len(chain):
            first, end, group = chain.group(start)
            groups.append((group, start - first))
            start = end

        def drop(at: Namespace) -> int:
            blocks = Blocks(at._client, at, self.shape)
            return sum(blocks._drop(group, offset, mark) for group, offset in groups)

        return self._groups._at_all(drop)

    def _match_by_message(self, chain: Chain) -> Match:
        return self.match(chain)


class _GroupsNamespace(ClusterNamespace):
    """The namespace of a cluster's blocks: they lie in that of their groups, and values beside them in its own."""

    def __init__(self, whole: ClusterNamespace, groups: Namespace) -> None:
        super().__init__(whole._cluster, whole.fields, whole.shape)
        self._at = whole._at
        self._groups = groups

    def _drop(self, mark: bytes) -> int:
        return self._groups._drop(mark) + super()._drop(mark)

    def _submit_drop(self, mark: bytes, callback: Callable[[bool], None]) -> None:
        def then(done: bool) -> None:
            if done:
                super(_GroupsNamespace, self)._submit_drop(mark, callback)
            else:
                callback(False)

        self._groups._submit_drop(mark, then)

    def usage(self) -> Tuple[int, int]:
        (live, size), (more, bytes_more) = super().usage(), self._groups.usage()
        return live + more, size + bytes_more


_Moved = Tuple[List[int], List[Result], Optional[KvCacheError]]
"""Which pages one server moved, what became of them, or why nothing is known."""


class ClusterMover(Mover):
    """Moves an engine's pages to and from the servers of a cluster: each through a mover of its server."""

    def __init__(self, client: ClusterClient, namespace: ClusterNamespace) -> None:
        super().__init__(client, namespace)  # type: ignore[arg-type]
        self._cluster = client
        self._values = namespace
        self._at: Dict[Client, Mover] = {}
        self._memory: List[Tuple[int, int]] = []
        with client._lock:
            for each in client._route.all:
                self._open(each)
            client._movers.add(self)
        client.watch()  # who waits for a part polls none of the servers

    def _open(self, client: Client) -> None:
        namespace = self._values._at.get(client)
        if namespace is None:
            return
        mover = Mover(client, namespace)
        for address, size in self._memory:
            mover.add(address, size)
        self._at[client] = mover

    def _close_at(self, client: Client) -> None:
        mover = self._at.pop(client, None)
        if mover is not None:
            mover.close()

    def add(self, address: int, size: int = 1) -> bool:
        with self._cluster._lock:
            self._memory.append((address, size))
            found = [each.add(address, size) for each in self._at.values()]
        return all(found)

    def remove(self, address: int) -> None:
        with self._cluster._lock:
            self._memory = [each for each in self._memory if each[0] != address]
            for each in self._at.values():
                each.remove(address)

    @property
    def maps(self) -> bool:
        return bool(self._at) and all(each.maps for each in self._at.values())

    def submit(
        self, store: bool, values: Sequence[Value], done: Callable[[List[Result], Optional[KvCacheError]], None]
    ) -> None:
        for key, pieces in values:
            wire.key(key)
            check_pieces(pieces)
        parts: Dict[Mover, List[int]] = {}
        for at, (key, _) in enumerate(values):
            client = self._cluster._route.of_value(key)
            mover = None if client is None else self._at.get(client)
            if mover is not None:
                parts.setdefault(mover, []).append(at)
        results = [Result.NO_ROOM if store else Result.ABSENT] * len(values)
        if not parts:
            lost = None if self._cluster.connected else ConnectionLost("no server of the cluster is connected now")
            done([] if lost else results, lost)
            return

        def end(heard: List[_Moved]) -> None:
            for numbers, found, _ in heard:  # a server that failed lacks its part; where all failed, nothing is known
                for at, result in zip(numbers, found):
                    results[at] = result
            errors = [error for _, _, error in heard if error is not None]
            failed = len(errors) == len(heard)
            done([] if failed else results, errors[0] if failed else None)

        moved: _Answers[_Moved] = _Answers(len(parts), end)
        for mover, numbers in parts.items():
            mine = [values[at] for at in numbers]
            try:
                mover.submit(store, mine, lambda found, error, numbers=numbers: moved.hear((numbers, found, error)))  # type: ignore[misc]
            except KvCacheError as failed:
                moved.hear((numbers, [], failed))

    def _place(self, values: Sequence[Value]) -> Optional[Tuple[Region, List[Tuple[bytes, List[Piece]]]]]:
        return None  # each server's mover knows its own region

    def close(self) -> None:
        for each in list(self._at.values()):
            each.close()


def connect(address: Union[str, Sequence[str]] = "127.0.0.1", **options: Any) -> Union[Client, ClusterClient]:
    """Connects to one server, or to all servers of a cluster.

    :param address: ``host:port`` of a server; or of servers of a cluster, one or more, as a list or with commas
        between them. The port is 7420 by default
    :param options: tenant, secret, tls, timeout, lazy and program, as ``Client`` takes them
    """
    if isinstance(address, str) and "," not in address:
        return Client(address, **options)
    return ClusterClient(address, **options)


def open_mover(client: Union[Client, ClusterClient], namespace: Namespace) -> Mover:
    """Returns a mover of pages between this process's memory and one server, or the servers of a cluster."""
    if isinstance(client, ClusterClient):
        assert isinstance(namespace, ClusterNamespace)
        return ClusterMover(client, namespace)
    return Mover(client, namespace)
