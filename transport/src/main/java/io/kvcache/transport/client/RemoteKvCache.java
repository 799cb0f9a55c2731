package io.kvcache.transport.client;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutSummary;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteAddress;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.HintCodec;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.StatsCodec;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A store that another process serves.
///
/// ```java
/// try (var cache = RemoteKvCache.connect("cache-host:7420")) {
///     cache.register(namespace);
///     try (BlockTable table = cache.acquire(BlockChain.of(namespace, tokens))) {
///         // as with an embedded store
///     }
/// }
/// ```
///
/// **Failures.** A server that is dead, slow or wrong is a miss: gets and matches answer less, puts answer
/// [io.kvcache.core.PutOutcome#NO_ROOM] or [io.kvcache.core.SealOutcome#DROPPED], and nothing that is handed out
/// has not passed its checksum. What cannot be answered without the server, drops, statistics and events, throws
/// `UncheckedIOException`. The session is opened again by itself, and namespaces are registered there again. Tables
/// that are open keep what has arrived, and end there.
///
/// **Several servers** stand in for each other: it uses the first one that lets it. When that fails it goes on to
/// the next in the order of the list, and behind the last to the first; when one before it is there again, it goes
/// back ([RemoteKvCacheBuilder#failbackAfter]). Tables, views and writers that are open then go on where they were
/// opened, and that session is kept for them. What the one has the other has not, so a change costs misses, and a
/// value that was replaced or dropped at the one may be found at the other as it was. All clients that are to share
/// what they store list the same servers in the same order. (To spread blocks over servers, put a
/// [io.kvcache.transport.peer.PeeredKvCache] before them.) A follower of [#events] learns of any new session by a
/// batch that says that events were lost.
///
/// **On the server's own host**, where the server shares its memory
/// ([io.kvcache.core.LocalKvCache#sharedMemory]) and allows it, that is mapped read-only: [#match] and [#getAll]
/// send no message, and segments of blocks are the server's slots themselves. What is put is written to memory
/// that the server gives for it, and copied from there, instead of being sent. The server keeps the slots where
/// they are for as long as it hears of this process. **A process that was stopped for longer than the lease may
/// have read something else**, and learns it from [BlockTable#isValid], asked after the use.
///
/// **Waiting.** `acquire` without a time-out waits until what is resident has arrived here, no longer than
/// the request time-out, as its blocks must be readable at once. With a time-out it returns before, and
/// blocks arrive in order. All other calls wait for one answer of the server.
///
/// **Ownership.** Bytes arrive in memory of this process, bounded by [RemoteKvCacheBuilder#memoryBytes];
/// what does not fit shortens the prefix. Closing leaves the memory of open tables alone until they are
/// closed.
///
/// **Threads.** Safe for any number. A thread that is interrupted while it waits gets a miss.
public final class RemoteKvCache implements KvCache {

    private static final long NO_WAIT_NANOS = 0;

    private final RpcClient client;
    private final RemoteReads reads;
    private final RemoteWrites writes;
    private final RemoteEvents events;
    private final AtomicBoolean closed = new AtomicBoolean();

    RemoteKvCache(RpcClient client) {
        this.client = client;
        reads = new RemoteReads(client);
        writes = new RemoteWrites(client);
        events = new RemoteEvents(client);
    }

    /// Connects to a server.
    ///
    /// @param address `host:port`, or `tls:host:port` to a server that has a certificate (see
    ///     [RemoteKvCacheBuilder#trust]), or `shm:host:port` to be refused where memory cannot be
    ///     shared, or `aeron:…` as in [io.kvcache.transport.aeron.AeronEndpoint], which takes a
    ///     flag of the JVM, or `auto:host:port` for the faster of TCP and Aeron over UDP where the
    ///     server offers both, measured for 0.1 s when it connects
    /// @throws UncheckedIOException when it cannot be reached
    public static RemoteKvCache connect(String address) {
        return builder(address).connect();
    }

    /// Connects to the first of several servers that lets it.
    ///
    /// @param address as above
    /// @param others the same, in the order in which they are tried; each may come by another way
    /// @throws UncheckedIOException when none can be reached
    public static RemoteKvCache connect(String address, String... others) {
        return builder(address, others).connect();
    }

    /// Returns a builder of a connection; see [RemoteKvCacheBuilder].
    ///
    /// @param address as above
    /// @param others further addresses, if any
    /// @throws IllegalArgumentException when one is not an address, or one is given twice
    public static RemoteKvCacheBuilder builder(String address, String... others) {
        List<String> all = Stream.concat(Stream.of(address), Stream.of(others)).toList();
        if (all.stream().distinct().count() < all.size()) {
            throw new IllegalArgumentException("addresses = " + all + "; allowed: each once");
        }
        return new RemoteKvCacheBuilder(all.stream().map(RemoteAddress::of).toList());
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the cache is closed");
        }
    }

    private void requireRegistered(Namespace namespace) {
        requireOpen();
        client.sessions().requireRegistered(namespace);
    }

    @Override
    public void register(Namespace namespace) {
        requireOpen();
        client.sessions().register(namespace);
    }

    @Override
    public Match match(BlockChain chain) {
        requireRegistered(chain.namespace());
        if (chain.length() == 0) {
            return Match.NOTHING;
        }
        Match found = reads.matchMapped(chain);
        return found != null ? found : match(chain, body -> {});
    }

    @Override
    public Match match(BlockChain chain, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        requireRegistered(chain.namespace());
        return chain.length() == 0 ? Match.NOTHING : match(chain, body -> body.i64(timeoutNanos));
    }

    private Match match(BlockChain chain, Consumer<BodyWriter> timeout) {
        return client.callOrDefault(
                Match.NOTHING,
                client.chainCall(
                        new RpcClient.ChainCall<>(MessageType.MATCH, chain, timeout, RemoteKvCache::parseMatch)));
    }

    static Match parseMatch(BodyReader reply) throws ProtocolException {
        return new Match(reply.count("device"), reply.count("host"), reply.count("disk"));
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        Preconditions.checkFrom(chain, from);
        requireRegistered(chain.namespace());
        if (chain.length() == 0) {
            return client.emptyTable(from);
        }
        return timeoutNanos == 0 ? reads.acquireResident(chain, from) : reads.acquireLoading(chain, from, timeoutNanos);
    }

    /// Over shared memory this sends no message: the blocks are looked up and copied here, and one that was evicted
    /// meanwhile is a miss.
    @Override
    public int getAll(BlockChain chain, int from, List<MemorySegment> into) {
        Preconditions.checkFrom(chain, from);
        requireRegistered(chain.namespace());
        Preconditions.checkTargets(chain, into);
        int copied = reads.copyMapped(chain, from, into);
        return copied < 0 ? KvCache.super.getAll(chain, from, into) : copied;
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        Preconditions.checkIndex(chain, index);
        requireRegistered(chain.namespace());
        Preconditions.checkPart(chain, part);
        return RemoteSlotWriter.reserveBlock(client, chain, index, part, timeoutNanos);
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        Preconditions.checkRange(chain, from, blocks.size());
        requireRegistered(chain.namespace());
        return writes.putBlocks(chain, from, blocks, timeoutNanos);
    }

    /// @throws UncheckedIOException when the server did not answer; it may have forgotten the blocks all
    ///     the same
    @Override
    public int drop(BlockChain chain, int from) {
        Preconditions.checkFrom(chain, from);
        requireRegistered(chain.namespace());
        if (from == chain.length()) {
            return 0;
        }
        return client.callOrThrow(client.chainCall(new RpcClient.ChainCall<>(
                MessageType.DROP_CHAIN, chain, body -> body.i32(from), reply -> reply.count("blocks"))));
    }

    /// @throws UncheckedIOException when the server did not answer; it may have forgotten all the same
    @Override
    public long drop(Namespace namespace) {
        requireRegistered(namespace);
        return client.callOrThrow(session -> session.call(
                MessageType.DROP_NAMESPACE,
                new BodyWriter().i32(session.namespaceNumber(namespace)),
                reply -> reply.nonNegativeLong("dropped"),
                NO_WAIT_NANOS));
    }

    @Override
    public boolean hint(Hint hint) {
        BlockChain chain = hint.chain();
        requireRegistered(chain.namespace());
        if (chain.length() == 0) {
            return false;
        }
        RpcClient.SessionCall<Boolean> call = client.chainCall(new RpcClient.ChainCall<>(
                MessageType.HINT, chain, body -> HintCodec.write(hint, body), RemoteKvCache::parseBoolean));
        return client.callOrDefault(false, session -> session.supportsHint(hint) && call.call(session));
    }

    @Override
    public int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        requireRegistered(namespace);
        keys.forEach(Preconditions::checkKey);
        int taken = 0;
        for (List<byte[]> some : ObjectHintBatches.of(keys, hint)) {
            taken += client.callOrDefault(0, session -> {
                if (!session.supportsObjectHints()) {
                    return 0;
                }
                BodyWriter body = new BodyWriter().i32(session.namespaceNumber(namespace));
                HintCodec.write(hint, some, body);
                return session.call(MessageType.HINT_OBJECTS, body, reply -> reply.count("taken"), NO_WAIT_NANOS);
            });
        }
        return taken;
    }

    private static boolean parseBoolean(BodyReader reply) throws ProtocolException {
        return reply.u8("yes") != 0;
    }

    @Override
    public ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        requireRegistered(namespace);
        Preconditions.checkKey(key);
        Preconditions.checkSize(bytes);
        return RemoteSlotWriter.reserveObject(client, namespace, key, bytes, timeoutNanos);
    }

    @Override
    public boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        requireRegistered(namespace);
        Preconditions.checkKey(key);
        Preconditions.checkSize(value.byteSize());
        return writes.putObject(namespace, key, value, timeoutNanos);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        requireRegistered(namespace);
        Preconditions.checkKey(key);
        return reads.getObject(namespace, key, timeoutNanos);
    }

    @Override
    public CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, Duration timeout, Executor executor) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        requireRegistered(namespace);
        Preconditions.checkKey(key);
        return reads.fetchObject(namespace, key, timeoutNanos, executor);
    }

    @Override
    public boolean containsObject(Namespace namespace, byte[] key) {
        return client.callOrDefault(false, objectCall(MessageType.CONTAINS_OBJECT, namespace, key));
    }

    /// @throws UncheckedIOException when the server did not answer; it may have forgotten the object all
    ///     the same
    @Override
    public boolean dropObject(Namespace namespace, byte[] key) {
        return client.callOrThrow(objectCall(MessageType.DROP_OBJECT, namespace, key));
    }

    private RpcClient.SessionCall<Boolean> objectCall(MessageType type, Namespace namespace, byte[] key) {
        requireRegistered(namespace);
        Preconditions.checkKey(key);
        return session -> {
            BodyWriter body = new BodyWriter(16 + key.length);
            body.i32(session.namespaceNumber(namespace)).i32(key.length).bytes(key);
            return session.call(type, body, RemoteKvCache::parseBoolean, NO_WAIT_NANOS);
        };
    }

    @Override
    public boolean flush(Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        requireOpen();
        return client.callOrDefault(
                false,
                session -> session.call(
                        MessageType.FLUSH,
                        new BodyWriter().i64(timeoutNanos),
                        RemoteKvCache::parseBoolean,
                        timeoutNanos));
    }

    /// Returns the statistics of the server's store, with those namespaces that this client registered.
    ///
    /// @throws UncheckedIOException when the server did not answer
    @Override
    public CacheStats stats() {
        requireOpen();
        return client.callOrThrow(session -> session.call(
                MessageType.STATS,
                new BodyWriter(),
                reply -> StatsCodec.read(reply, session.namespacesByNumber()),
                NO_WAIT_NANOS));
    }

    /// Returns the statistics of this client.
    public RemoteStats remoteStats() {
        requireOpen();
        return RemoteStats.of(client);
    }

    /// The address of the server that is used, or was used last.
    public String server() {
        return client.sessions().server();
    }

    /// The server's events. Its methods throw `UncheckedIOException` when the server does not answer.
    @Override
    public EventStream events() {
        requireOpen();
        return events;
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        client.sessions().close();
        client.fetchExecutor().shutdown();
        client.buffers().close();
        int open = client.openHandles().get();
        if (open > 0 && client.options().strict()) {
            throw new IllegalStateException(open + " tables, views or writers are open");
        }
    }

    /// Cuts what is said of many objects into messages.
    ///
    /// They go in the order of the keys, and the last first where that is how the objects are to go. A
    /// session's turn is told of in one, with the last of its keys, as what a message does not name the
    /// session has left behind.
    static final class ObjectHintBatches {

        private ObjectHintBatches() {}

        /// The keys of each message.
        static List<List<byte[]>> of(List<byte[]> keys, ObjectHint hint) {
            List<List<byte[]>> parts = new ArrayList<>();
            for (int end = keys.size(); end > 0; ) {
                int begin = batchStart(keys, end);
                parts.add(keys.subList(begin, end));
                end = begin;
            }
            boolean whole =
                    hint instanceof ObjectHint.Label label && label.label().session() != 0;
            if (whole && parts.size() > 1) {
                return parts.subList(0, 1);
            }
            return hint instanceof ObjectHint.Forget ? parts : parts.reversed();
        }

        private static int batchStart(List<byte[]> keys, int end) {
            int begin = end;
            long bytes = 0;
            while (begin > 0 && end - begin < HintCodec.MAX_KEYS && bytes < HintCodec.MAX_KEY_BYTES) {
                bytes += Integer.BYTES + keys.get(--begin).length;
            }
            return begin;
        }
    }
}
