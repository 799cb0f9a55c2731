package io.kvcache.transport.client;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.client.RemoteKvCacheBuilder.Fabric;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FabricReader;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.shm.SharedStore.OneSidedCounters;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// One session with the server, until it breaks: its connections, the numbers of its namespaces, the
/// tables that more blocks are expected for.
final class RemoteSession {

    private static final System.Logger LOG = System.getLogger(RemoteSession.class.getName());

    private final RemoteOptions options;
    private final OneSidedCounters counters;
    private final long previousSessions;
    /// Capabilities of the server.
    private final Challenge challenge;

    private final ControlConnection control;
    private final DataConnectionPool data;
    private final ReleaseQueue releaseQueue = new ReleaseQueue();
    private final Map<Namespace, Integer> numbers = new ConcurrentHashMap<>();
    private final Map<Namespace, Integer> recordNumbers = new ConcurrentHashMap<>();
    private final Set<Namespace> refused = ConcurrentHashMap.newKeySet();
    private final Map<Long, RemoteBlockTable> tablesByLease = new ConcurrentHashMap<>();
    private final AccessReporter accessReporter = new AccessReporter();
    private final long renewNanos;
    private final AtomicReference<@Nullable SharedStore> shared = new AtomicReference<>();
    private final AtomicReference<@Nullable FabricReader> fabric = new AtomicReference<>();
    private final StagingClient staging;
    private volatile boolean closed;
    /// Messages of the server, on any of its connections.
    private final LongAdder heard = new LongAdder();

    private volatile long lastRenewalNanos = System.nanoTime();
    private volatile long heardAtRenewal;
    private volatile boolean renewalWanted;
    private volatile CompletableFuture<Boolean> renewal = CompletableFuture.completedFuture(true);

    /// @param ended hears that it is over, once or more
    private RemoteSession(
            Connector connector,
            SessionSettings settings,
            CallTimeouts callTimeouts,
            ClientHandshake.OpenedConnection opened,
            Runnable ended) {
        RemoteOptions options = settings.options;
        this.options = options;
        counters = settings.counters;
        previousSessions = settings.previousSessions;
        challenge = opened.challenge();
        staging = new StagingClient(this, challenge.hasCapability(Challenge.STAGING) ? options.stagingBytes() : 0);
        data = new DataConnectionPool(connector, options, callTimeouts, releaseQueue, opened.welcome(), heard);
        renewNanos = TimeUnit.MILLISECONDS.toNanos(opened.welcome().leaseMillis()) / 3;
        control = new ControlConnection(opened, releaseQueue, heard, this::onProgress, () -> {
            closed = true;
            unmapSharedMemory();
            data.close();
            tablesByLease.values().forEach(RemoteBlockTable::end);
            ended.run();
        });
        Thread.ofPlatform().daemon().name("kvcache-remote-read").start(control::readLoop);
    }

    /// @throws IOException when the server cannot be reached
    /// @throws RpcException when it does not want this client
    static RemoteSession open(Connector connector, SessionSettings settings, CallTimeouts callTimeouts, Runnable ended)
            throws IOException, RpcException {
        ClientHandshake.OpenedConnection opened = ClientHandshake.open(
                connector,
                new ClientHandshake.HandshakeSettings(
                        settings.options, callTimeouts, null, settings.options.requestTimeoutNanos()));
        try {
            opened.connection().share();
            return new RemoteSession(connector, settings, callTimeouts, opened, ended);
        } catch (IOException | RuntimeException | Error failed) {
            opened.connection().close(DisconnectReason.INTERNAL);
            throw failed;
        }
    }

    /// How it behaves, where it counts what is read without a message, and how many sessions there were before.
    ///
    record SessionSettings(RemoteOptions options, OneSidedCounters counters, long previousSessions) {}

    /// Sessions of this cache before this one.
    long previousSessions() {
        return previousSessions;
    }

    /// Maps the server's memory, where that is wanted and possible.
    ///
    /// @throws RpcException when it must be and cannot
    void mapSharedMemory() throws RpcException {
        SharedMemoryMode use = options.sharedMemory();
        if (use == SharedMemoryMode.OFF
                || (use == SharedMemoryMode.AUTO && !challenge.hasCapability(Hello.SHARED_MEMORY))) {
            return;
        }
        try {
            SharedMemoryFiles files = call(MessageType.SHARE, new BodyWriter(), SharedMemoryCodec::read, 0);
            shared.set(SharedStore.open(files, counters));
            if (closed) {
                unmapSharedMemory();
            }
        } catch (IOException notHere) {
            throwIfRequired(use, RpcException.rejected(Status.FAILED, String.valueOf(notHere.getMessage())));
        } catch (RpcException failed) {
            throwIfRequired(use, failed);
        }
    }

    private static void throwIfRequired(SharedMemoryMode use, RpcException why) throws RpcException {
        if (use == SharedMemoryMode.REQUIRED || !why.hasReply()) {
            throw why;
        }
        LOG.log(System.Logger.Level.INFO, "shared memory is not used: " + why.getMessage());
    }

    /// Connects to the server's memory over a fabric, where that is wanted and possible; else its blocks come by
    /// message.
    ///
    /// @throws RpcException when there was no answer
    void connectFabric() throws RpcException {
        Fabric over = options.fabric();
        if (over == null) {
            return;
        }
        try {
            if (!challenge.hasCapability(Challenge.FABRIC)) {
                throw new IOException("the server's memory is not on a fabric");
            }
            FabricDescriptor place = call(MessageType.FABRIC, new BodyWriter(), FabricDescriptor::read, 0);
            fabric.set(over.provider().connect(place, over.transports()));
            if (closed) {
                unmapSharedMemory();
            }
        } catch (IOException notHere) {
            LOG.log(
                    System.Logger.Level.INFO,
                    "blocks are sent, as one-sided reads are not available: " + notHere.getMessage());
        } catch (RpcException failed) {
            if (!failed.hasReply()) {
                throw failed;
            }
            LOG.log(
                    System.Logger.Level.INFO,
                    "blocks are sent, as one-sided reads are not available: " + failed.getMessage());
        }
    }

    /// Returns the reader of the server's memory over a fabric, or null if there is none or it has failed.
    @Nullable
    FabricReader fabric() {
        FabricReader reader = fabric.get();
        return reader != null && reader.isUsable() ? reader : null;
    }

    private void unmapSharedMemory() {
        staging.close();
        SharedStore store = shared.getAndSet(null);
        if (store != null) {
            store.release();
        }
        FabricReader reader = fabric.getAndSet(null);
        if (reader != null) {
            // It waits for a read that is going on.
            Thread.ofPlatform().daemon().name("kvcache-ucx-close").start(reader::close);
        }
    }

    /// The server's memory, if it is mapped. A caller retains it first.
    @Nullable
    SharedStore sharedStore() {
        return shared.get();
    }

    /// Memory that the server shares for what is put.
    StagingClient staging() {
        return staging;
    }

    /// Reports to the server, some time soon, that a block was read without asking.
    void reportAccess(long handle) {
        accessReporter.recordAccess(handle);
    }

    boolean isClosed() {
        return closed;
    }

    ControlConnection control() {
        return control;
    }

    DataConnectionPool data() {
        return data;
    }

    /// Makes a namespace usable in this session.
    void register(Namespace namespace) throws RpcException {
        BodyWriter body = new BodyWriter(512);
        NamespaceCodec.write(namespace, body);
        try {
            RegisteredNumbers told = call(MessageType.REGISTER, body, RegisteredNumbers::read, 0);
            recordNumbers.put(namespace, told.recordNumber);
            numbers.put(namespace, told.number);
        } catch (RpcException failed) {
            if (failed.hasReply() && isPermanent(failed.status())) {
                refused.add(namespace);
            }
            throw failed;
        }
    }

    /// Number of a namespace in this session, and in the records of a server that shares its memory.
    private record RegisteredNumbers(int number, int recordNumber) {

        static RegisteredNumbers read(BodyReader reply) throws ProtocolException {
            return new RegisteredNumbers(
                    reply.count("number"),
                    reply.hasRemaining() ? reply.count("in records") : SharedStore.ANY_NAMESPACE);
        }
    }

    /// The number of a namespace in the records of shared memory, or [SharedStore#ANY_NAMESPACE] when the
    /// server tells none; null as long as its registration was not answered in this session.
    @Nullable
    Integer recordNamespaceNumber(Namespace namespace) {
        return recordNumbers.get(namespace);
    }

    /// Returns whether a refusal holds for the rest of the session.
    private static boolean isPermanent(Status refusal) {
        return switch (refusal) {
            case UNSUPPORTED, INVALID, UNAUTHORIZED, FORBIDDEN -> true;
            case OK, GONE, CORRUPT, BUSY, FAILED -> false;
        };
    }

    /// The session's number of a namespace. When the answer to its registration was lost, or was that it could not
    /// be done just then, it is asked again.
    int namespaceNumber(Namespace namespace) throws RpcException {
        Integer number = numbers.get(namespace);
        if (number == null && !refused.contains(namespace)) {
            register(namespace);
            number = numbers.get(namespace);
        }
        if (number == null) {
            throw RpcException.noReply(namespace + " was refused by this server");
        }
        return number;
    }

    /// The namespaces by number.
    Map<Integer, Namespace> namespacesByNumber() {
        return numbers.entrySet().stream().collect(Collectors.toMap(Map.Entry::getValue, Map.Entry::getKey));
    }

    /// Asks over the connection that carries many requests, and waits.
    ///
    /// @param timeoutNanos how long the server itself may wait
    <T> T call(MessageType type, BodyWriter body, ControlConnection.ReplyParser<T> parser, long timeoutNanos)
            throws RpcException {
        long patience = options.totalTimeoutNanos(timeoutNanos);
        return ControlConnection.await(
                control.call(new ControlConnection.CallRequest<>(type, body, parser, patience)), patience, late -> {});
    }

    /// Gives a lease back, no later than the next request and soon in any case.
    void release(long lease) {
        tablesByLease.remove(lease);
        if (lease != 0 && !closed) {
            releaseQueue.add(lease);
        }
    }

    /// News of this lease go to this table.
    void trackLease(long lease, RemoteBlockTable table) {
        tablesByLease.put(lease, table);
        if (closed) {
            table.end();
        }
    }

    void untrackLease(long lease) {
        tablesByLease.remove(lease);
    }

    private void onProgress(ControlConnection.LeaseProgress news) {
        RemoteBlockTable table = tablesByLease.get(news.lease());
        if (table != null) {
            table.onProgress(news.ready(), news.end());
        }
    }

    /// Gives back, renews what is held, and ends what is late. It may wait while the server does not
    /// listen, which [#closeIfUnresponsive] ends. Closes the session when a message could not be sent, of
    /// which the thread that reads may not hear.
    void heartbeat(long nowNanos) {
        tablesByLease.values().forEach(table -> table.endIfExpired(nowNanos));
        control.flushReleases();
        reportAccesses();
        if (control.isClosed()) {
            close(DisconnectReason.BROKEN);
            tablesByLease.values().forEach(RemoteBlockTable::end);
        } else if ((renewalWanted || nowNanos - lastRenewalNanos >= renewNanos) && renewal.isDone()) {
            renewalWanted = false;
            heardAtRenewal = heard.sum();
            lastRenewalNanos = nowNanos;
            renewal = control.call(new ControlConnection.CallRequest<>(
                    MessageType.RENEW, new BodyWriter(), RemoteSession::ignoreBody, options.requestTimeoutNanos()));
        }
    }

    private void reportAccesses() {
        BodyWriter uses = accessReporter.drainBody();
        if (uses != null) {
            control.sendOneWay(MessageType.TOUCH, uses);
            counters.addReported(uses.size() / Long.BYTES - 1);
        }
    }

    /// Has the next heartbeat ask the server for a sign of life. Waits for nothing.
    void requestLifeSign() {
        renewalWanted = true;
    }

    /// Messages of the server so far.
    long heardCount() {
        return heard.sum();
    }

    /// Gives up when the server does not listen, or has sent nothing at all while a renewal waited for its answer. One
    /// that answers other requests is slow, not gone. Never waits.
    void closeIfUnresponsive(long nowNanos) {
        if (control.connection().stalledNanos() > options.requestTimeoutNanos()) {
            close(DisconnectReason.STALLED);
        } else if (!renewal.isDone() && nowNanos - lastRenewalNanos > options.requestTimeoutNanos()) {
            long heardSoFar = heard.sum();
            if (heardSoFar == heardAtRenewal) {
                close(DisconnectReason.SILENT);
            } else {
                heardAtRenewal = heardSoFar;
                lastRenewalNanos = nowNanos;
            }
        }
    }

    private static boolean ignoreBody(BodyReader body) throws ProtocolException {
        return true;
    }

    void close(DisconnectReason reason) {
        closed = true;
        unmapSharedMemory();
        control.connection().close(reason);
        data.close();
    }

    /// Blocks that were read without a message, for the server's policy: collected by any thread, sent in
    /// batches by one.
    ///
    /// When more are read between two batches than fit, the rest is not told: a policy that hears of thousands
    /// of uses decides as well as one that hears of all.
    static final class AccessReporter {

        private static final int MAX_ACCESSES = 8192;

        private final AtomicLongArray handles = new AtomicLongArray(MAX_ACCESSES);
        private final AtomicInteger count = new AtomicInteger();

        /// Notes a use.
        ///
        /// @param handle of its record
        void recordAccess(long handle) {
            int at = count.get() < MAX_ACCESSES ? count.getAndIncrement() : MAX_ACCESSES;
            if (at < MAX_ACCESSES) {
                handles.setRelease(at, handle + 1);
            }
        }

        /// The body of TOUCH, or null when there is nothing to tell. By one thread.
        @Nullable
        BodyWriter drainBody() {
            int noted = Math.min(count.get(), MAX_ACCESSES);
            if (noted == 0) {
                return null;
            }
            BodyWriter body = new BodyWriter(8 + Long.BYTES * noted).i32(noted).i32(0);
            for (int i = 0; i < noted; i++) {
                body.i64(handles.getAndSet(i, 0) - 1);
            }
            count.set(0);
            return body;
        }
    }
}
