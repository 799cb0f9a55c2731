package io.kvcache.transport.endpoint;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.cluster.ViewSource;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.EventCodec;
import io.kvcache.transport.wire.HintCodec;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.ObjectKeysCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.StatsCodec;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.ViewCodec;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Requests of one connection that move no bytes of blocks: look-ups, drops, hints, statistics and events.
final class StoreRequestHandler {

    /// Half a MiB of events in one reply.
    private static final int MAX_EVENTS = 8192;

    /// Bytes of an object in a listing.
    private static final int LISTED_BYTES = BlockKey.BYTES + Long.BYTES;

    /// Three MiB of objects in one reply.
    private static final int MAX_LISTED = 131_072;

    private static final Comparator<BlockKey> BY_DIGEST = Comparator.comparing(BlockKey::hi, Long::compareUnsigned)
            .thenComparing(BlockKey::lo, Long::compareUnsigned);

    private final EndpointContext context;
    private final ClientSession session;
    private final ChainCache chains;
    private final ChainCache.ChainRetention retention;

    StoreRequestHandler(EndpointContext context, ClientSession session, ChainCache chains) {
        this.context = context;
        this.session = session;
        this.chains = chains;
        retention = new ChainCache.ChainRetention(context.chains());
    }

    private static BodyWriter yesNo(boolean yes) {
        return new BodyWriter().u8(yes ? 1 : 0);
    }

    /// A namespace → `u32 number`, and where memory is shared `u32` that its records have, 32 bytes digest
    void register(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        Namespace namespace = namespace(body);
        String only = session.onlyTenant();
        if (only != null && !only.equals(namespace.owner())) {
            throw new RequestException(
                    Status.FORBIDDEN,
                    "tenant = \"%s\" of %s; allowed: \"%s\"".formatted(namespace.tenant(), namespace, only));
        }
        String refusal = context.options().namespaces().rejectionReason(namespace);
        if (refusal != null) {
            throw new RequestException(Status.FORBIDDEN, refusal);
        }
        context.cache().register(namespace);
        int number = session.registerNamespace(namespace);
        if (number == 0) {
            throw new RequestException(
                    Status.BUSY, "%s namespaces are registered; allowed: %1$s".formatted(ClientSession.MAX_NAMESPACES));
        }
        BodyWriter reply = new BodyWriter().i32(number);
        SharedMemory memory = context.sharedMemory();
        if (memory != null) {
            reply.i32(memory.namespaceId(namespace)).bytes(namespace.digest());
        }
        request.reply(reply);
    }

    private static Namespace namespace(BodyReader body) throws ProtocolException {
        try {
            return NamespaceCodec.read(body);
        } catch (IllegalArgumentException impossible) {
            throw new ProtocolException(String.valueOf(impossible.getMessage()));
        }
    }

    /// `chain[, u64 timeout]` → `u32 device, u32 host, u32 disk, u32 full`
    void match(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        ChainCache.ResolvedChain resolved = chains.resolve(body);
        BlockChain chain = resolved.chain();
        if (!body.hasRemaining()) {
            reply(request, context.cache().match(chain));
            return;
        }
        Duration timeout = Duration.ofNanos(request.boundedTimeout(body.nonNegativeLong("timeout")));
        if (context.options().cluster() == null) {
            reply(request, context.cache().match(chain, timeout));
        } else { // another server may be asked
            context.later(
                    session,
                    request,
                    retention.retain(resolved),
                    () -> reply(request, context.cache().match(chain, timeout)));
        }
    }

    private static void reply(EndpointRequest request, Match match) {
        request.reply(new BodyWriter()
                .i32(match.deviceBlocks())
                .i32(match.hostBlocks())
                .i32(match.diskBlocks())
                .i32(match.fullBlocks()));
    }

    /// `u32 namespace, u32 key bytes, key` → `u8 here`
    void containsObject(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = session.requireNamespace(body);
        byte[] key = key(body);
        boolean here = context.cache().containsObject(namespace, key);
        if (!here) {
            context.onAbsent(session, namespace, key);
        }
        request.reply(yesNo(here));
    }

    private static byte[] key(BodyReader body) throws ProtocolException {
        return body.bytes("key", body.count("key bytes"));
    }

    /// `u32 namespace, u32 count, u64 pin, keys` → `u32 present, u32 pinned`
    void matchObjects(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = session.requireNamespace(body);
        int count = ObjectKeysCodec.readCount(body);
        Duration pin = Duration.ofNanos(body.nonNegativeLong("pin"));
        List<byte[]> keys = ObjectKeysCodec.read(body, count);
        int present = 0;
        while (present < count && context.cache().containsObject(namespace, keys.get(present))) {
            present++;
        }
        keys.subList(present, count).forEach(key -> context.onAbsent(session, namespace, key));
        int pinned = pin.isZero() ? 0 : applyHint(namespace, keys.subList(0, present), new ObjectHint.Pin(pin));
        request.reply(new BodyWriter().i32(present).i32(pinned));
    }

    /// `u32 namespace, u32 most, 16 bytes after` → `u32 count, u32 0`, and for each object `16 bytes digest, u64 bytes`
    void listObjects(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        ObjectCatalog catalog = catalog(session.requireNamespace(body));
        int most = Math.min(body.count("most"), MAX_LISTED);
        BlockKey after = digest(body);
        context.later(session, request, () -> {
            List<ObjectCatalog.Entry> page = catalog.list().stream()
                    .filter(entry -> BY_DIGEST.compare(entry.digest(), after) > 0)
                    .sorted(Comparator.comparing(ObjectCatalog.Entry::digest, BY_DIGEST))
                    .limit(most)
                    .toList();
            BodyWriter reply = new BodyWriter(8 + LISTED_BYTES * page.size());
            reply.i32(page.size()).i32(0);
            for (ObjectCatalog.Entry entry : page) {
                reply.bigEndian(entry.digest().hi()).bigEndian(entry.digest().lo());
                reply.i64(entry.bytes());
            }
            request.reply(reply);
        });
    }

    /// `u32 namespace, u32 count, 16 bytes digest` of each → `u32 dropped`
    void dropObjects(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        ObjectCatalog catalog = catalog(session.requireNamespace(body));
        int count = ObjectKeysCodec.readCount(body);
        int dropped = 0;
        for (int i = 0; i < count; i++) {
            dropped += catalog.drop(digest(body)) ? 1 : 0;
        }
        request.reply(new BodyWriter().i32(dropped));
    }

    private ObjectCatalog catalog(Namespace namespace) throws RequestException {
        if (context.cache() instanceof LocalKvCache local) {
            return local.objects(namespace);
        }
        throw new RequestException(Status.UNSUPPORTED, "this server's store is not its own");
    }

    private static BlockKey digest(BodyReader body) throws ProtocolException {
        return BlockKey.ofDigest(body.bytes("digest", BlockKey.BYTES));
    }

    /// `chain, u32 from[, mark]` → `u32 blocks`
    void dropChain(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        ChainCache.ResolvedChain resolved = chains.resolve(body);
        BlockChain chain = resolved.chain();
        int from = body.count("from");
        DropMark mark = dropMark(body);
        if (from >= chain.length() || !concernsCluster(chain.namespace())) {
            request.reply(new BodyWriter().i32(context.cache().drop(chain, from)));
            return;
        }
        context.later(session, request, retention.retain(resolved), () -> {
            long dropped = dropInCluster(
                    chain.namespace(),
                    chain.key(from),
                    mark,
                    () -> context.cache().drop(chain, from));
            request.reply(new BodyWriter().i32((int) dropped));
        });
    }

    /// `[u64 time, u64 id]`
    private static DropMark dropMark(BodyReader body) throws ProtocolException {
        return body.hasRemaining() ? new DropMark(body.nonNegativeLong("time"), body.i64("id")) : DropMark.NONE;
    }

    private boolean concernsCluster(Namespace namespace) {
        return context.options().cluster() != null && BlockGroup.isGroups(namespace);
    }

    /// Drops blocks of the cluster's groups, of which the other servers have to hear. May wait for a disk.
    private long dropInCluster(Namespace groups, @Nullable BlockKey from, DropMark mark, LongSupplier drop) {
        EndpointOptions.ClusterAccess cluster =
                Objects.requireNonNull(context.options().cluster());
        Runnable over = cluster.drops().onDrop(groups, from, mark);
        try {
            return drop.getAsLong();
        } finally {
            over.run();
        }
    }

    /// `u32 namespace, u32 key bytes, key` → `u8 was here`
    void dropObject(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = session.requireNamespace(body);
        request.reply(yesNo(context.cache().dropObject(namespace, key(body))));
    }

    /// `u32 namespace[, mark]` → `u64 blocks and objects`
    void dropNamespace(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        Namespace namespace = session.requireNamespace(body);
        DropMark mark = dropMark(body);
        if (!concernsCluster(namespace)) {
            request.reply(new BodyWriter().i64(context.cache().drop(namespace)));
            return;
        }
        context.later(
                session,
                request,
                () -> request.reply(new BodyWriter()
                        .i64(dropInCluster(
                                namespace, null, mark, () -> context.cache().drop(namespace)))));
    }

    /// `chain` and a [hint][HintCodec] → `u8 taken`; 0 for an unknown kind.
    void hint(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        Hint hint = HintCodec.read(body).forChain(chain);
        request.reply(yesNo(hint != null && applyHint(hint)));
    }

    private boolean applyHint(Hint hint) {
        KvCache cache = context.cache();
        if (!(hint instanceof Hint.Pin pin) || pin.chain().length() == 0) {
            return cache.hint(hint);
        }
        return applyPin(SessionPins.PinRequest.of(cache, pin), pin.time())
                || pin.time().isZero();
    }

    private boolean applyPin(SessionPins.PinRequest pin, Duration time) {
        return session.pins().apply(SessionPins.PinRefCounts.of(context.cache()), pin, Timeouts.toNanos(time));
    }

    /// `u32 namespace` and a [hint][HintCodec] → `u32 taken`; 0 for an unknown kind.
    void hintObjects(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = session.requireNamespace(body);
        HintCodec.DecodedObjectHint decoded = HintCodec.readObjects(body);
        ObjectHint hint = decoded.hint();
        request.reply(new BodyWriter().i32(hint == null ? 0 : applyHint(namespace, decoded.keys(), hint)));
    }

    private int applyHint(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        KvCache cache = context.cache();
        if (!(hint instanceof ObjectHint.Pin pin)) {
            return cache.hintObjects(namespace, keys, hint);
        }
        int taken = 0;
        for (byte[] key : keys) {
            List<byte[]> one = List.of(key);
            SessionPins.PinRequest request = new SessionPins.PinRequest(
                    BlockKey.ofObject(namespace, key),
                    () -> cache.hintObjects(namespace, one, pin) > 0,
                    () -> cache.hintObjects(namespace, one, new ObjectHint.Pin(Duration.ZERO)));
            taken += applyPin(request, pin.time()) ? 1 : 0;
        }
        return taken;
    }

    /// → see [StatsCodec]
    void stats(EndpointRequest request) {
        BodyWriter reply = new BodyWriter(1024);
        StatsCodec.write(context.cache().stats(), session.namespaceNumbers().numbers(), reply);
        request.reply(reply);
    }

    /// `u64 sequence, u32 most` → `u64 next, u8 lost, 3 × 0, u32 events`, and these
    void events(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        long sequence = body.i64("sequence");
        int most = body.count("most");
        requireAllTenants();
        EventBatch batch = context.cache().events().since(sequence, Math.min(most, MAX_EVENTS));
        List<CacheEvent> events = batch.events();
        BodyWriter reply = new BodyWriter(16 + EventCodec.BYTES * events.size());
        reply.i64(batch.nextSequence()).u8(batch.hasGap() ? 1 : 0).u8(0).u16(0);
        reply.i32(events.size());
        events.forEach(event -> EventCodec.write(event, reply));
        request.reply(reply);
    }

    /// Events and snapshots name the blocks of all tenants.
    private void requireAllTenants() throws RequestException {
        if (session.onlyTenant() != null) {
            throw new RequestException(
                    Status.FORBIDDEN, "events include all tenants; allowed: clients that may act for all");
        }
    }

    /// `u64 snapshot (0: take one), u32 first, u32 0` → `u64 snapshot, u64 next, u32 stored, u32
    /// namespaces, u32 events, u32 0`, for each namespace that the session has registered `u32 number in
    /// events, u32 number of the session`, and events from the first on.
    void snapshot(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        long number = body.i64("snapshot");
        int first = body.count("first");
        requireAllTenants();
        SnapshotCursors cursors = context.snapshotCursors();
        if (number == 0) {
            context.later(session, request, () -> sendPage(request, cursors.open(session, context.cache()), first));
            return;
        }
        StoreSnapshot kept = cursors.find(session, number);
        if (kept == null) {
            throw new RequestException(Status.GONE, "snapshot " + number + " was read, or gave way to another");
        }
        sendPage(request, new SnapshotCursors.NumberedSnapshot(number, kept), first);
    }

    private void sendPage(EndpointRequest request, SnapshotCursors.NumberedSnapshot numbered, int first) {
        StoreSnapshot snapshot = numbered.snapshot();
        int stored = snapshot.stored().size();
        int from = Math.min(first, stored);
        List<CacheEvent> events = snapshot.stored().subList(from, Math.min(stored, from + MAX_EVENTS));
        BodyWriter reply = new BodyWriter(256 + EventCodec.BYTES * events.size());
        BodyWriter names = new BodyWriter();
        snapshot.namespaces().forEach((id, namespace) -> {
            Integer own = session.namespaceNumbers().numbers().get(namespace);
            if (own != null) {
                names.i32(id).i32(own);
            }
        });
        if (from + events.size() == stored) {
            context.snapshotCursors().finish(session, numbered.number());
        }
        reply.i64(numbered.number()).i64(snapshot.nextSequence()).i32(stored);
        reply.i32(names.size() / 8).i32(events.size()).i32(0).append(names);
        events.forEach(event -> EventCodec.write(event, reply));
        request.reply(reply);
    }

    /// `u64 timeout` → `u8 durable`
    void flush(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        Duration timeout = Duration.ofNanos(request.boundedTimeout(body.nonNegativeLong("timeout")));
        requireFlushAllowed();
        context.later(
                session, request, () -> request.reply(yesNo(context.cache().flush(timeout))));
    }

    /// `u64 digest known, u64 timeout` → `u8 changed`, and if so a [view][ViewCodec]
    void view(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        long known = body.i64("digest");
        long timeoutNanos = request.boundedTimeout(body.nonNegativeLong("timeout"));
        EndpointOptions.ClusterAccess access = context.options().cluster();
        if (access == null) {
            throw new RequestException(Status.UNSUPPORTED, "this server is in no cluster");
        }
        ViewSource cluster = access.views();
        ClusterView now = cluster.view();
        if (now.digest() != known
                || timeoutNanos == 0
                || context.gracefulShutdown().isStarted()) {
            reply(request, now, known);
        } else {
            context.later(session, request, () -> reply(request, awaitChange(cluster, known, timeoutNanos), known));
        }
    }

    /// Waits for a view with another digest; the end of the session interrupts that.
    private static ClusterView awaitChange(ViewSource cluster, long known, long timeoutNanos) {
        CompletableFuture<ClusterView> changed = new CompletableFuture<>();
        Consumer<ClusterView> listener = view -> {
            if (view.digest() != known) {
                changed.complete(view);
            }
        };
        Runnable end = cluster.listen(listener);
        try {
            listener.accept(cluster.view()); // it may have changed before the listener was there
            return changed.get(timeoutNanos, TimeUnit.NANOSECONDS);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            return cluster.view();
        } catch (ExecutionException | TimeoutException unchanged) {
            return cluster.view();
        } finally {
            end.run();
        }
    }

    private static void reply(EndpointRequest request, ClusterView view, long known) {
        boolean changed = view.digest() != known;
        BodyWriter body = new BodyWriter(256).u8(changed ? 1 : 0);
        if (changed) {
            ViewCodec.write(view, body);
        }
        request.reply(body);
    }

    /// A flush writes what all tenants have stored, and may take minutes of the disks' time.
    private void requireFlushAllowed() throws RequestException {
        String only = session.onlyTenant();
        if (only != null
                && !only.equals(Namespace.DEFAULT_TENANT)
                && !context.options().domains().containsKey(only)) {
            throw new RequestException(
                    Status.FORBIDDEN,
                    "tenant = \"%s\" may not flush, as that writes what all tenants have; allowed: tenant \"%s\", or a"
                                    .formatted(only, Namespace.DEFAULT_TENANT)
                            + " client that may speak for all");
        }
    }
}
