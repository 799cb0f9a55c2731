package io.kvcache.transport.client;

import com.github.benmanes.caffeine.cache.Caffeine;
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
import io.kvcache.core.RangeQuery;
import io.kvcache.core.check.Preconditions;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PromptTree;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteAddress;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.HintCodec;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ObjectKeysCodec;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.StatsCodec;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.ViewCodec;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A store that another process serves.
///
/// ```java
/// try (var cache = RemoteKvCache.connect("cache-host:7420")) {
///     cache.register(namespace);
///     try (BlockTable table = cache.acquire(cache.chain(namespace, tokens))) {
///         // as with an embedded store
///     }
/// }
/// ```
///
/// **Failures.** A dead, slow or faulty server is a miss: gets and matches find less, puts return
/// [io.kvcache.core.PutOutcome#NO_ROOM] or [io.kvcache.core.SealOutcome#DROPPED]. The client verifies the checksum
/// of everything that it hands out. Drops, statistics and events need the server, and throw `UncheckedIOException`
/// without it. The client reconnects by itself and registers its namespaces again. Open tables keep the blocks
/// that have arrived, and end there.
///
/// After a change of session, a follower of [#events] gets a batch that reports lost events.
///
/// **Several servers** of a cluster are one cache by [io.kvcache.transport.peer.ClusteredKvCache].
///
/// **On the server's own host** the client maps the server's memory read-only, if the server shares it
/// ([io.kvcache.core.LocalKvCache#sharedMemory]) and allows that. Then [#match] and [#getAll] send no message, and
/// segments of blocks are the server's slots. Puts write to staging memory of the server, which copies them from
/// there, instead of sending bytes. The server keeps leased slots in place while it hears of this process. **A
/// process that was stopped for longer than the lease may have read other bytes.** [BlockTable#isValid] says so
/// after the use.
///
/// **Waiting.** `acquire` without a timeout waits until the resident blocks have arrived, but no longer than the
/// request timeout, as its blocks must be readable at once. With a timeout it returns earlier, and blocks arrive
/// in order. All other calls wait for one reply of the server.
///
/// **Ownership.** Bytes arrive in memory of this process, which [RemoteKvCacheBuilder#memoryBytes] limits. Blocks
/// that do not fit shorten the prefix. The memory of open tables stays until they are closed, also after the cache
/// was closed.
///
/// **Threads.** Safe for any number. A thread that is interrupted while it waits gets a miss.
public final class RemoteKvCache implements KvCache {

    private static final long NO_WAIT_NANOS = 0;

    private final RemoteContext client;
    private final RemoteReads reads;
    private final RemoteWrites writes;
    private final RemoteEvents events;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final PromptTree prompts = new PromptTree(Caffeine.newBuilder()
            .maximumWeight(PromptTree.maxBytes())
            .weigher(PromptTree::weigh)
            .executor(Runnable::run)
            .build()
            .asMap());

    RemoteKvCache(RemoteContext client) {
        this.client = client;
        reads = new RemoteReads(client);
        writes = new RemoteWrites(client);
        events = new RemoteEvents(client);
    }

    /// Connects to a server.
    ///
    /// @param address `host:port`, or `tls:host:port` to a server that has a certificate (see
    ///     [RemoteKvCacheBuilder#trust]), or `shm:host:port` to be refused where memory cannot be
    ///     shared, or `aeron:…` where there is `kvcache-transport-aeron` and a flag of the JVM, or `ucx:host:port`
    ///     for one-sided reads where there is `kvcache-transport-ucx`
    /// @throws IllegalArgumentException when it is not an address
    /// @throws IllegalStateException when an artifact or a flag is missing for it
    /// @throws UncheckedIOException when the server cannot be reached
    public static RemoteKvCache connect(String address) {
        return builder(address).connect();
    }

    /// Returns a builder of a connection; see [RemoteKvCacheBuilder].
    ///
    /// @param address as above
    /// @throws IllegalArgumentException when it is not an address
    public static RemoteKvCacheBuilder builder(String address) {
        return new RemoteKvCacheBuilder(RemoteAddress.of(address));
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the cache is closed");
        }
    }

    private void requireRegistered(Namespace namespace) {
        requireOpen();
        client.keeper().requireRegistered(namespace);
    }

    @Override
    public void register(Namespace namespace) {
        requireOpen();
        client.keeper().register(namespace);
    }

    @Override
    public BlockChain chain(Namespace namespace, int[] tokens) {
        return prompts.chain(namespace, tokens);
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
                        new RemoteContext.ChainCall<>(MessageType.MATCH, chain, timeout, RemoteKvCache::parseMatch)));
    }

    static Match parseMatch(BodyReader reply) throws ProtocolException {
        return new Match(reply.count("device"), reply.count("host"), reply.count("disk"), reply.count("full"));
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        Preconditions.checkFrom(chain, from);
        requireRegistered(chain.namespace());
        if (chain.length() == 0) {
            return BlockTable.empty(from);
        }
        return timeoutNanos == 0 ? reads.acquireResident(chain, from) : reads.acquireLoading(chain, from, timeoutNanos);
    }

    /// Over shared memory this sends no message: the client looks the blocks up and copies them. A block that was
    /// evicted meanwhile is a miss.
    @Override
    public int getAll(BlockChain chain, int from, List<MemorySegment> into) {
        Preconditions.checkFrom(chain, from);
        requireRegistered(chain.namespace());
        Preconditions.checkTargets(chain, into);
        int copied = reads.copyMapped(chain, from, into);
        return copied < 0 ? KvCache.super.getAll(chain, from, into) : copied;
    }

    /// The server sends nothing but the ranges. Over shared memory, those of blocks in the server's
    /// memory are read there. A server that is older than this request sends whole blocks, and so it
    /// does for ranges above 16 MiB.
    @Override
    public int getRange(BlockChain chain, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        RangeQuery query = new RangeQuery(chain, from, range, into);
        requireRegistered(chain.namespace());
        boolean mapped = reads.isMapped();
        int copied = mapped ? KvCache.super.getRange(chain, from, range, into, NO_WAIT) : 0;
        if (from + copied == query.end() || (mapped && timeoutNanos == 0)) {
            return copied;
        }
        RangeQuery rest = query.startingAt(from + copied);
        int received = reads.getRange(rest, timeoutNanos);
        return copied
                + (received < 0 ? KvCache.super.getRange(chain, rest.from(), range, rest.into(), timeout) : received);
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
        return drop(chain, from, DropMark.NONE);
    }

    /// As [#drop(BlockChain, int)], one of several servers that are asked for the same.
    ///
    /// @param mark the same at all of them
    /// @throws UncheckedIOException when the server did not answer; it may have forgotten the blocks all
    ///     the same
    public int drop(BlockChain chain, int from, DropMark mark) {
        Preconditions.checkFrom(chain, from);
        requireRegistered(chain.namespace());
        if (from == chain.length()) {
            return 0;
        }
        return client.callOrThrow(client.chainCall(new RemoteContext.ChainCall<>(
                MessageType.DROP_CHAIN, chain, body -> addMark(body.i32(from), mark), reply -> reply.count("blocks"))));
    }

    private static BodyWriter addMark(BodyWriter body, DropMark mark) {
        return mark.equals(DropMark.NONE) ? body : body.i64(mark.millis()).i64(mark.id());
    }

    /// @throws UncheckedIOException when the server did not answer; it may have forgotten all the same
    @Override
    public long drop(Namespace namespace) {
        return drop(namespace, DropMark.NONE);
    }

    /// As [#drop(Namespace)], one of several servers that are asked for the same.
    ///
    /// @param mark the same at all of them
    /// @throws UncheckedIOException when the server did not answer; it may have forgotten all the same
    public long drop(Namespace namespace, DropMark mark) {
        requireRegistered(namespace);
        return client.callOrThrow(session -> session.call(
                MessageType.DROP_NAMESPACE,
                addMark(new BodyWriter().i32(session.namespaceNumber(namespace)), mark),
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
        RemoteContext.SessionCall<Boolean> call = client.chainCall(new RemoteContext.ChainCall<>(
                MessageType.HINT, chain, body -> HintCodec.write(hint, body), RemoteKvCache::parseBoolean));
        return client.callOrDefault(false, call);
    }

    @Override
    public int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        requireRegistered(namespace);
        keys.forEach(Preconditions::checkKey);
        int taken = 0;
        for (List<byte[]> some : ObjectHintBatches.of(keys, hint)) {
            taken += client.callOrDefault(0, session -> {
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

    private RemoteContext.SessionCall<Boolean> objectCall(MessageType type, Namespace namespace, byte[] key) {
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

    /// Tokens of the prompts that [#chain] was given: those whose hashes it knew, and those that it hashed.
    public PromptTree.TokenCounts promptTokens() {
        return prompts.counts();
    }

    /// Returns the statistics of this client.
    public RemoteStats remoteStats() {
        requireOpen();
        return RemoteStats.of(client);
    }

    /// Returns whether there is a session with the server now.
    public boolean isConnected() {
        return client.keeper().isConnected();
    }

    /// Returns whether the server's memory is read in place now.
    public boolean isMemoryMapped() {
        return client.keeper().isMemoryMapped();
    }

    /// Returns the number of requests without an answer, and of blocks and objects that did not have their checksum.
    public long failureCount() {
        return client.counters().failed.sum() + client.counters().corrupt.sum();
    }

    /// Returns a number that changes whenever the server is heard: by any message, or as it accepts a session.
    public long lifeSigns() {
        return client.keeper().lifeSigns();
    }

    /// Asks the server for a sign of life without waiting for it: its answer changes [#lifeSigns].
    public void requestLifeSign() {
        client.keeper().requestLifeSign();
    }

    /// Returns the number of tables, views and writers that are open.
    public int openHandles() {
        return client.openHandles().get();
    }

    /// Returns the address of the server.
    public String server() {
        return client.keeper().server();
    }

    /// Returns the view of the server's cluster, when it has another digest than the one known or the timeout ends.
    ///
    /// @param knownDigest [ClusterView#digest] that the caller has, or 0 for none
    /// @param timeout how long to wait for a change, from now; zero asks for the present view
    /// @return null when nothing has changed
    /// @throws IllegalStateException when the server is in no cluster
    /// @throws UncheckedIOException when the server does not answer
    public @Nullable ClusterView view(long knownDigest, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        requireOpen();
        Optional<ClusterView> changed = client.callOrThrow(session -> {
            try {
                return session.call(
                        MessageType.VIEW,
                        new BodyWriter().i64(knownDigest).i64(timeoutNanos),
                        RemoteKvCache::parseView,
                        timeoutNanos);
            } catch (RpcException failed) {
                if (failed.hasReply() && failed.status() == Status.UNSUPPORTED) {
                    throw new IllegalStateException(server() + ": " + failed.getMessage());
                }
                throw failed;
            }
        });
        return changed.orElse(null);
    }

    /// Passes a request of another protocol on to the server, as another server of its cluster
    /// ([RemoteKvCacheBuilder#server]), and waits for the reply.
    ///
    /// @param dialect number of the protocol, of which both servers know the meaning
    /// @param request its bytes, in native memory that stays as it is until the call returns
    /// @param timeout for all of it
    /// @throws IllegalStateException when the server refuses the request, which it has not run then
    /// @throws UncheckedIOException without a reply, so that nothing is known about what the server has done
    public CommandReply execute(int dialect, List<MemorySegment> request, Duration timeout) {
        requireOpen();
        Payload payload = Payload.of(request);
        long timeoutNanos = Timeouts.toNanos(timeout);
        return client.callOrThrow(session -> {
            try {
                return CommandCall.run(client, session, dialect, payload, timeoutNanos);
            } catch (RpcException failed) {
                if (failed.hasReply() && failed.status() != Status.FAILED) {
                    throw new IllegalStateException(server() + ": " + failed.getMessage());
                }
                throw failed;
            }
        });
    }

    private static Optional<ClusterView> parseView(BodyReader reply) throws ProtocolException {
        return reply.u8("changed") == 0 ? Optional.empty() : Optional.of(ViewCodec.read(reply));
    }

    /// Returns the server's events. Its methods throw `UncheckedIOException` when the server does not reply.
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
        client.keeper().close();
        client.fetchExecutor().shutdown();
        client.buffers().close();
        int open = client.openHandles().get();
        if (open > 0 && client.options().strict()) {
            throw new IllegalStateException(open + " tables, views or writers are open");
        }
    }

    /// Splits hints about many objects into messages.
    ///
    /// Messages follow the order of the keys, or the reverse if the objects are to be evicted in reverse order. A
    /// session's turn takes one message, with its last keys, as the session has left behind all keys that a
    /// message does not name.
    static final class ObjectHintBatches {

        private ObjectHintBatches() {}

        /// Returns the keys of each message.
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
            while (begin > 0 && end - begin < ObjectKeysCodec.MAX_KEYS && bytes < HintCodec.MAX_KEY_BYTES) {
                bytes += Integer.BYTES + keys.get(--begin).length;
            }
            return begin;
        }
    }

    /// Passes one request of another protocol on, and receives its reply.
    static final class CommandCall implements DataConnection.ReplyHandler {

        private final RemoteContext client;
        private long replyBytes = -1;
        private boolean complete;
        private String problem = "";
        private @Nullable CommandReply reply;

        private CommandCall(RemoteContext client) {
            this.client = client;
        }

        /// @throws RpcException when there is no whole reply
        static CommandReply run(
                RemoteContext client, RemoteSession session, int dialect, Payload request, long timeoutNanos)
                throws RpcException {
            CommandCall call = new CommandCall(client);
            BodyWriter body =
                    new BodyWriter(Long.BYTES).u8(dialect).u8(0).u16(0).i32(0);
            boolean received = false;
            try {
                session.data()
                        .withConnection(
                                System.nanoTime() + timeoutNanos,
                                (line, patience) -> line.call(MessageType.EXECUTE, body, request, patience, call));
                CommandReply reply = call.reply;
                if (reply == null || !call.problem.isEmpty()) {
                    throw RpcException.noReply(call.problem);
                }
                received = true;
                return reply;
            } finally {
                if (!received && call.reply != null) {
                    call.reply.close();
                }
            }
        }

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            replyBytes = body.nonNegativeLong("bytes");
        }

        @Override
        public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
            body.count("index");
            int checksum = body.i32("checksum");
            int bytes = header.payloadBytes();
            if (bytes != replyBytes || complete || reply != null) {
                throw new ProtocolException("a reply of %s bytes; allowed: %s, once".formatted(bytes, replyBytes));
            }
            ReceiveBuffers.PooledBuffer slot = client.buffers().allocate(bytes);
            if (slot == null) {
                client.counters().outOfMemory.increment();
                problem = "there is no memory for a reply of " + bytes + " bytes";
                return PayloadSink.discard(bytes, sum -> complete = true);
            }
            reply = new CommandReply(slot, bytes);
            return PayloadSink.into(slot.buffer(bytes), sum -> onReceived(sum, checksum, bytes));
        }

        private void onReceived(ChunkedCrc sum, int checksum, int bytes) {
            complete = true;
            client.counters().bytesIn.add(bytes);
            if (sum.value() != checksum) {
                client.counters().corrupt.increment();
                problem = "the reply fails its checksum";
            }
        }

        @Override
        public boolean isComplete() {
            return complete;
        }
    }
}
