package io.kvcache.transport.remote;

import io.kvcache.core.Hint;
import io.kvcache.core.SharedMemoryFiles;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.shm.OneSidedCounters;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.ucx.UcxReader;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Challenge;
import io.kvcache.transport.wire.FabricPlace;
import io.kvcache.transport.wire.Hello;
import io.kvcache.transport.wire.HintCodec;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.ShareCodec;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// One session with the server, until it breaks: its connections, the numbers of its namespaces, the
/// tables that more blocks are expected for.
final class Attachment {

    private static final System.Logger LOG = System.getLogger(Attachment.class.getName());

    private final RemoteOptions options;
    private final OneSidedCounters counters;
    private final long earlier;
    private final String way;
    private final ControlLine control;
    private final DataLines data;
    private final Releases releases = new Releases();
    private final Map<Namespace, Integer> numbers = new ConcurrentHashMap<>();
    private final Map<Namespace, Integer> inRecords = new ConcurrentHashMap<>();
    private final Set<Namespace> refused = ConcurrentHashMap.newKeySet();
    private final Map<Long, RemoteTable> expecting = new ConcurrentHashMap<>();
    private final Touched touched = new Touched();
    private final boolean sharing;
    private final long renewNanos;
    private final AtomicReference<@Nullable SharedStore> shared = new AtomicReference<>();
    private final boolean onFabric;
    private final AtomicReference<@Nullable UcxReader> fabric = new AtomicReference<>();
    private final boolean putting;
    private final boolean stagingObjects;
    private final boolean listening;
    private final boolean listeningOfObjects;
    private final Staging staging;
    private final Users users = new Users();
    private volatile boolean over;
    private volatile long renewedAt = System.nanoTime();
    private volatile CompletableFuture<Boolean> renewal = CompletableFuture.completedFuture(true);

    /// @param ended hears that it is over, once or more
    private Attachment(Connector connector, Means means, Deadlines deadlines, Handshake.Opened opened, Runnable ended) {
        RemoteOptions options = means.options;
        this.options = options;
        counters = means.counters;
        earlier = means.earlier;
        way = means.way;
        putting = opened.challenge().can(Challenge.PUTS);
        stagingObjects = opened.challenge().can(Challenge.STAGED_OBJECTS);
        listening = opened.challenge().can(Challenge.SAYINGS);
        listeningOfObjects = opened.challenge().can(Challenge.OBJECT_SAYINGS);
        staging = new Staging(this, opened.challenge().can(Challenge.STAGING) ? options.stagingBytes() : 0);
        data = new DataLines(connector, options, deadlines, releases, opened.welcome());
        sharing = opened.challenge().can(Hello.SHARED_MEMORY);
        onFabric = opened.challenge().can(Challenge.FABRIC);
        renewNanos = TimeUnit.MILLISECONDS.toNanos(opened.welcome().leaseMillis()) / 3;
        control = new ControlLine(opened, releases, this::progress, () -> {
            over = true;
            unshare();
            data.close();
            expecting.values().forEach(RemoteTable::end);
            ended.run();
        });
        Thread.ofPlatform().daemon().name("kvcache-remote-read").start(control::read);
    }

    /// @throws IOException when the server cannot be reached
    /// @throws CallFailed when it does not want this client
    static Attachment open(Connector connector, Means means, Deadlines deadlines, Runnable ended)
            throws IOException, CallFailed {
        Handshake.Opened opened = Handshake.open(
                connector, new Handshake.Means(means.options, deadlines, null, means.options.requestNanos()));
        try {
            return new Attachment(connector, means, deadlines, opened, ended);
        } catch (RuntimeException | Error bug) {
            opened.line().close(DisconnectReason.INTERNAL);
            throw bug;
        }
    }

    /// How it behaves, where it counts what is read without a message, and how many sessions there were before.
    ///
    /// @param way that it goes, and why
    record Means(RemoteOptions options, OneSidedCounters counters, long earlier, String way) {}

    /// Sessions of this cache before this one.
    long earlier() {
        return earlier;
    }

    /// The way that it goes, and why.
    String way() {
        return way;
    }

    /// Who uses it.
    Users users() {
        return users;
    }

    /// Maps the server's memory, where that is wanted and possible.
    ///
    /// @throws CallFailed when it must be and cannot
    void share() throws CallFailed {
        SharedMemoryUse use = options.sharedMemory();
        if (use == SharedMemoryUse.OFF || (use == SharedMemoryUse.AUTO && !sharing)) {
            return;
        }
        try {
            SharedMemoryFiles files = ask(MessageType.SHARE, new BodyWriter(), ShareCodec::read, 0);
            shared.set(SharedStore.open(files, counters));
            if (over) {
                unshare();
            }
        } catch (IOException notHere) {
            refused(use, CallFailed.refused(Status.FAILED, String.valueOf(notHere.getMessage())));
        } catch (CallFailed failed) {
            refused(use, failed);
        }
    }

    private static void refused(SharedMemoryUse use, CallFailed why) throws CallFailed {
        if (use == SharedMemoryUse.REQUIRED || !why.answered()) {
            throw why;
        }
        LOG.log(System.Logger.Level.INFO, "the server's memory is not read in place: " + why.getMessage());
    }

    /// Connects to the server's memory over a fabric, where that is wanted and possible; else its blocks come by
    /// message.
    ///
    /// @throws CallFailed when there was no answer
    void join() throws CallFailed {
        String transports = options.fabric();
        if (transports == null) {
            return;
        }
        try {
            if (!onFabric) {
                throw new IOException("the server's memory is on no fabric");
            }
            FabricPlace place = ask(MessageType.FABRIC, new BodyWriter(), FabricPlace::read, 0);
            fabric.set(UcxReader.connect(place, transports));
            if (over) {
                unshare();
            }
        } catch (IOException notHere) {
            LOG.log(System.Logger.Level.INFO, "blocks come by message: " + notHere.getMessage());
        } catch (CallFailed failed) {
            if (!failed.answered()) {
                throw failed;
            }
            LOG.log(System.Logger.Level.INFO, "blocks come by message: " + failed.getMessage());
        }
    }

    /// What reads the server's memory over a fabric, if there is such and it has not failed.
    @Nullable
    UcxReader fabric() {
        UcxReader reader = fabric.get();
        return reader != null && reader.usable() ? reader : null;
    }

    private void unshare() {
        staging.end();
        SharedStore store = shared.getAndSet(null);
        if (store != null) {
            store.release();
        }
        UcxReader reader = fabric.getAndSet(null);
        if (reader != null) {
            // It waits for a read that is going on.
            Thread.ofPlatform().daemon().name("kvcache-ucx-close").start(reader::close);
        }
    }

    /// The server's memory, if it is mapped. Whoever uses it retains it first.
    @Nullable
    SharedStore shared() {
        return shared.get();
    }

    /// Memory that the server shares for what is put.
    Staging staging() {
        return staging;
    }

    /// Tells the server, some time soon, that a block was read without asking.
    void touch(long handle) {
        touched.note(handle);
    }

    boolean over() {
        return over;
    }

    /// Whether the server takes room and bytes in one request.
    boolean puts() {
        return putting;
    }

    /// Whether it takes objects so out of memory that it shares.
    boolean putsStagedObjects() {
        return stagingObjects;
    }

    /// Whether the server takes a hint.
    boolean takes(Hint hint) {
        return listening || !HintCodec.isOfLater(hint);
    }

    /// Whether the server takes hints about objects.
    boolean takesObjectHints() {
        return listeningOfObjects;
    }

    ControlLine control() {
        return control;
    }

    DataLines data() {
        return data;
    }

    /// Makes a namespace usable in this session.
    void register(Namespace namespace) throws CallFailed {
        BodyWriter body = new BodyWriter(512);
        NamespaceCodec.write(namespace, body);
        try {
            Numbers told = ask(MessageType.REGISTER, body, Numbers::read, 0);
            inRecords.put(namespace, told.inRecords);
            numbers.put(namespace, told.number);
        } catch (CallFailed failed) {
            if (failed.answered() && lasts(failed.status())) {
                refused.add(namespace);
            }
            throw failed;
        }
    }

    /// What a namespace is called in this session, and in the records of a server that shares its memory.
    private record Numbers(int number, int inRecords) {

        static Numbers read(BodyReader reply) throws Violation {
            return new Numbers(reply.count("number"), reply.more() ? reply.count("in records") : SharedStore.ANY);
        }
    }

    /// The number of a namespace in the records of shared memory, or [SharedStore#ANY] when the
    /// server tells none; null as long as its registration was not answered in this session.
    @Nullable
    Integer inRecords(Namespace namespace) {
        return inRecords.get(namespace);
    }

    /// Whether a refusal will be the same for as long as the session lasts.
    private static boolean lasts(Status refusal) {
        return switch (refusal) {
            case UNSUPPORTED, INVALID, UNAUTHORIZED, FORBIDDEN -> true;
            case OK, GONE, CORRUPT, BUSY, FAILED -> false;
        };
    }

    /// The session's number of a namespace. When the answer to its registration was lost, or was that it could not be
    /// done just then, it is asked again.
    int number(Namespace namespace) throws CallFailed {
        Integer number = numbers.get(namespace);
        if (number == null && !refused.contains(namespace)) {
            register(namespace);
            number = numbers.get(namespace);
        }
        if (number == null) {
            throw CallFailed.unanswered(namespace + " was refused by this server");
        }
        return number;
    }

    /// The namespaces by number.
    Map<Integer, Namespace> names() {
        return numbers.entrySet().stream().collect(Collectors.toMap(Map.Entry::getValue, Map.Entry::getKey));
    }

    /// Asks over the connection that carries many requests, and waits.
    ///
    /// @param timeoutNanos how long the server itself may wait
    <T> T ask(MessageType type, BodyWriter body, ControlLine.Parser<T> parser, long timeoutNanos) throws CallFailed {
        long patience = options.patienceNanos(timeoutNanos);
        return ControlLine.await(
                control.ask(new ControlLine.Question<>(type, body, parser, patience)), patience, late -> {});
    }

    /// Gives a lease back, no later than the next request and soon in any case.
    void release(long lease) {
        expecting.remove(lease);
        if (lease != 0 && !over) {
            releases.add(lease);
        }
    }

    /// News of this lease go to this table.
    void expect(long lease, RemoteTable table) {
        expecting.put(lease, table);
        if (over) {
            table.end();
        }
    }

    void forget(long lease) {
        expecting.remove(lease);
    }

    private void progress(ControlLine.Progress news) {
        RemoteTable table = expecting.get(news.lease());
        if (table != null) {
            table.progress(news.ready(), news.end());
        }
    }

    /// Gives back, renews what is held, and ends what is late. It may wait while the server does not
    /// listen, which [#watch] ends.
    void beat(long nowNanos) {
        expecting.values().forEach(table -> table.tick(nowNanos));
        control.flush();
        tellUses();
        if (nowNanos - renewedAt >= renewNanos && renewal.isDone()) {
            renewedAt = nowNanos;
            renewal = control.ask(new ControlLine.Question<>(
                    MessageType.RENEW, new BodyWriter(), Attachment::nothing, options.requestNanos()));
        }
    }

    private void tellUses() {
        BodyWriter uses = touched.take();
        if (uses != null) {
            control.tell(MessageType.TOUCH, uses);
            counters.tell(uses.size() / Long.BYTES - 1);
        }
    }

    /// Gives up when the server does not listen or does not answer. Never waits.
    void watch(long nowNanos) {
        if (control.line().stalledNanos() > options.requestNanos()) {
            close(DisconnectReason.STALLED);
        } else if (!renewal.isDone() && nowNanos - renewedAt > options.requestNanos()) {
            close(DisconnectReason.SILENT);
        }
    }

    private static boolean nothing(BodyReader body) throws Violation {
        return true;
    }

    void close(DisconnectReason reason) {
        unshare();
        control.line().close(reason);
        data.close();
    }
}
