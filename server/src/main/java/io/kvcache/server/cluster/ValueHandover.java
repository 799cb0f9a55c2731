package io.kvcache.server.cluster;

import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.server.cluster.ValueHandover.Outcome;
import io.kvcache.server.cluster.ValueHandover.Run;
import io.kvcache.server.forward.InProcessCommands.Dialect;
import io.kvcache.server.forward.RequestBytes;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.forward.RequestForwarder.Kind;
import io.kvcache.server.forward.RequestForwarder.Reply;
import io.kvcache.server.forward.RequestForwarder.Request;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.HashSlotOwnership.SlotMap;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace.KeyPage;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.lm.LmProtocol;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ViewSource;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Gives values that never change from this server's memory to the servers that own their slots.
///
/// **How.** It walks the keys of all tenants, in the order in which SCAN lists them. The owner is asked first
/// whether it has a key, so what it has costs no transfer. Then it gets the value by the commands of a client: SET
/// for most, and PUT of `lm://` for values with tensor metadata. This server keeps its copy until it is evicted.
///
/// Values that may change stay, as the owner may have a later one; see [io.kvcache.server.keyspace.HashSlotOwnership].
/// So do those on disk alone.
///
/// An owner that does not take a value, as its memory is full or as it does not answer, is given no more values of
/// the same tenant by this handover.
///
/// **Threads.** Any.
final class ValueHandover {

    private static final Logger LOG = System.getLogger(ValueHandover.class.getName());

    private static final int PAGE_KEYS = 256;

    /// For a reply, each of some seconds: an owner that does not come back in that time leaves the view.
    private static final int MAX_TRIES = 5;

    /// Of a reply, as many as tell what it says.
    private static final int REPLY_BYTES = 8;

    /// PTTL of a key that is not there.
    private static final String ABSENT = ":-2";

    private static final String OUT_OF_MEMORY = "-OOM";

    private final List<Tenant> tenants;
    private final RequestForwarder forwarder;
    private final LongAdder givenCount = new LongAdder();

    /// @param values of each tenant
    /// @param forwarder that no client's requests use
    ValueHandover(Map<String, KeyspaceRouter> values, RequestForwarder forwarder) {
        tenants = values.entrySet().stream()
                .map(each -> new Tenant(each.getKey(), each.getValue()))
                .toList();
        this.forwarder = forwarder;
    }

    /// Returns how many values other servers have taken so far.
    long givenCount() {
        return givenCount.sum();
    }

    /// Begins a handover, which threads then [Run#give].
    ///
    /// @param slots whose values are given if another server owns them
    /// @param goesOn false to end it early
    Run begin(IntPredicate slots, BooleanSupplier goesOn) {
        return new Run(slots, goesOn);
    }

    private record Tenant(String name, KeyspaceRouter router) {

        Keyspace keyspace() {
            return router.ownKeyspace();
        }

        /// A key may have become another tenant's, as the keys of the default tenant say whose they are.
        boolean gives(byte[] key) {
            return keyspace().isContent(key) && router.of(key).equals(keyspace());
        }
    }

    /// @param slot by which clients find the key
    /// @param dialect in which the owner computes the same slot
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Value(Tenant tenant, byte[] key, int slot, Dialect dialect) {

        static Value of(Tenant tenant, byte[] key) {
            return tenant.keyspace().hasWholeKeys()
                    ? new Value(tenant, key, HashSlots.of(key), Dialect.RESP_CLUSTER)
                    : new Value(tenant, key, tenant.router.slotOf(key), Dialect.RESP2);
        }

        Value withKey(byte[] other) {
            return new Value(tenant, other, slot, dialect);
        }
    }

    /// What came of a handover.
    ///
    /// @param given values that an owner did not have and has now
    /// @param left values for which there was no time, or that their owners did not take
    record Outcome(long given, long left) {}

    /// One handover.
    ///
    /// **Threads.** Any number give values.
    final class Run {

        private final IntPredicate slots;
        private final BooleanSupplier goesOn;
        private final KeyWalk keys = new KeyWalk(tenants);
        private final Set<Target> refusals = ConcurrentHashMap.newKeySet();
        private final LongAdder given = new LongAdder();
        private final LongAdder left = new LongAdder();

        private record Target(String tenant, String owner) {}

        private Run(IntPredicate slots, BooleanSupplier goesOn) {
            this.slots = slots;
            this.goesOn = goesOn;
        }

        /// Gives values until there is no other, or the handover is to end.
        void give() {
            try {
                giveAll();
            } catch (RuntimeException bug) {
                LOG.log(Level.ERROR, "a value was not given to its owner", bug);
                left.increment();
            }
        }

        private void giveAll() {
            while (goesOn.getAsBoolean()) {
                Value next = next();
                if (next == null) {
                    return;
                }
                boolean taken = true;
                for (byte[] key : next.tenant.keyspace().keysToGive(next.key)) {
                    taken = taken && give(next.withKey(key));
                }
            }
        }

        /// Returns what came of it. Call it when all threads have ended.
        Outcome outcome() {
            while (next() != null) {
                left.increment();
            }
            return new Outcome(given.sum(), left.sum());
        }

        private @Nullable Value next() {
            for (Value next = keys.next(); next != null; next = keys.next()) {
                if (slots.test(next.slot) && forwarder.isElsewhere(next.slot) && next.tenant.gives(next.key)) {
                    return next;
                }
            }
            return null;
        }

        /// Returns whether the owner has the value.
        private boolean give(Value it) {
            Target target = new Target(it.tenant.name, forwarder.ownerName(it.slot));
            if (target.owner.isEmpty() || refusals.contains(target)) {
                left.increment();
                return false;
            }
            try (PinnedValue value = it.tenant.keyspace().hold(it.key)) {
                if (value == null) {
                    return false; // on disk alone, or evicted meanwhile
                }
                String before = askPttl(it);
                if (isPresent(before)) {
                    return true;
                }
                String after = before.startsWith(ABSENT) ? store(it, value) : before;
                if (isStored(after)) {
                    given.increment();
                    givenCount.increment();
                    return true;
                }
                if (after.isEmpty() || after.startsWith(OUT_OF_MEMORY) || after.startsWith(ABSENT)) {
                    refusals.add(target);
                }
            }
            left.increment();
            return false;
        }

        private static boolean isPresent(String pttl) {
            return pttl.startsWith(":") && !pttl.startsWith(ABSENT);
        }

        /// Returns whether the owner has a value after [#store], from this server or, sooner, from a client.
        private static boolean isStored(String reply) {
            return reply.startsWith("+") || reply.startsWith("$-1") || isPresent(reply);
        }

        private String store(Value it, PinnedValue value) {
            KeyInfo info = it.tenant.keyspace().info(it.key);
            long expiresAtMillis = info == null ? 0 : info.expiresAtMillis();
            return value.tensorMetadata().equals(TensorMetadata.NONE)
                    ? set(it, value, expiresAtMillis)
                    : putWithMetadata(it, value, expiresAtMillis);
        }

        private String set(Value it, PinnedValue value, long expiresAtMillis) {
            RequestBytes set = new RequestBytes()
                    .beginArray(expiresAtMillis == 0 ? 4 : 6)
                    .bulk("SET")
                    .bulk(it.key)
                    .bulk(value)
                    .bulk("NX");
            if (expiresAtMillis != 0) {
                set.bulk("PXAT").bulk(Long.toString(expiresAtMillis));
            }
            return ask(it, it.dialect, set);
        }

        /// A PUT does not say whether the value was stored, so PTTL does.
        private String putWithMetadata(Value it, PinnedValue value, long expiresAtMillis) {
            ask(it, Dialect.LM, LmProtocol.put(it.key, value));
            if (expiresAtMillis != 0) {
                ask(
                        it,
                        it.dialect,
                        new RequestBytes()
                                .beginArray(3)
                                .bulk("PEXPIREAT")
                                .bulk(it.key)
                                .bulk(Long.toString(expiresAtMillis)));
            }
            return askPttl(it);
        }

        private String askPttl(Value it) {
            return ask(it, it.dialect, RequestBytes.command("PTTL", it.key));
        }

        /// Returns how the owner's reply begins; empty when there is none. All these requests may run twice.
        private String ask(Value it, Dialect dialect, RequestBytes bytes) {
            Request request = new Request(it.tenant.name, dialect, it.slot, Kind.REPEATABLE_WRITE, bytes.segments());
            try {
                String reply = askOnce(request);
                for (int tries = 1; tries < MAX_TRIES && reply.isEmpty() && goesOn.getAsBoolean(); tries++) {
                    reply = askOnce(request);
                }
                return reply;
            } finally {
                bytes.release();
            }
        }

        private String askOnce(Request request) {
            CompletableFuture<Reply> come = new CompletableFuture<>();
            forwarder.forward(request, come::complete);
            try (Reply reply = come.join()) {
                return reply.firstBytes(REPLY_BYTES);
            }
        }
    }

    /// All keys, a page at a time. Where the halves of values are given one by one, all metadata comes last.
    ///
    /// **Threads.** Any.
    private static final class KeyWalk {

        private final Iterator<Pass> others;
        private final Queue<byte[]> page = new ArrayDeque<>();
        private @Nullable Pass pass;
        private long cursor;

        private record Pass(Tenant tenant, Predicate<byte[]> keys) {

            static Stream<Pass> of(Tenant tenant) {
                Predicate<byte[]> metadata = EngineValueKey::isMetadata;
                return tenant.keyspace().hasWholeKeys()
                        ? Stream.of(new Pass(tenant, metadata.negate()), new Pass(tenant, metadata))
                        : Stream.of(new Pass(tenant, _ -> true));
            }
        }

        KeyWalk(List<Tenant> tenants) {
            others = tenants.stream().flatMap(Pass::of).iterator();
        }

        /// Returns the next key, or null when there is none left.
        synchronized @Nullable Value next() {
            while (page.isEmpty()) {
                if (cursor == 0) {
                    pass = others.hasNext() ? others.next() : null;
                }
                if (pass == null) {
                    return null;
                }
                KeyPage next = pass.tenant.keyspace().scan(cursor, PAGE_KEYS);
                next.keys().stream().filter(pass.keys).forEach(page::add);
                cursor = next.next();
            }
            byte[] key = page.remove();
            return Value.of(Objects.requireNonNull(pass).tenant, key);
        }
    }

    /// Gives values away whose slots another server owns since a change of the view: it has joined, or is back.
    /// After a meeting of two sides of a partition, these are the values of all slots, as both sides have taken
    /// values of all.
    ///
    /// It begins when the owners have stayed the same for a second, gives one value after the other, and begins
    /// anew when the owners change again. Slots stay on its list until all their values are given, or the slot is
    /// this server's again. A server that drains gives everything away by itself: see [DrainHandover].
    ///
    /// **Threads.** One of its own, until [#close].
    static final class SlotMoves implements AutoCloseable {

        private static final Logger LOG = System.getLogger(SlotMoves.class.getName());

        private static final long SETTLE_MILLIS = 1000;
        private static final Duration END = Duration.ofSeconds(10);

        private final String node;
        private final HashSlotOwnership ownership;
        private final ValueHandover values;
        private final long limitNanos;
        private final Runnable endListening;
        private final Thread thread;

        /// Slots of which this server may have values.
        private final BitSet held = new BitSet(HashSlots.COUNT);

        private Owners owners;
        private volatile long changes;
        private volatile boolean closed;

        /// What decides who owns a slot.
        private record Owners(List<ClusterNode> serving, long meetings) {

            static Owners of(ClusterView view) {
                return new Owners(view.serving().stream().map(NodeInfo::node).toList(), view.meetings());
            }
        }

        /// @param ownership that listens to the views already
        /// @param limit how long it gives values after a change of the view
        SlotMoves(HashSlotOwnership ownership, ViewSource views, ValueHandover values, Duration limit) {
            node = ownership.node();
            this.ownership = ownership;
            this.values = values;
            limitNanos = limit.toNanos();
            owners = Owners.of(views.view());
            endListening = views.listen(this::onView);
            thread = Thread.ofPlatform().daemon().name("kvcache-cluster-values").start(this::follow);
        }

        private synchronized void onView(ClusterView view) {
            Owners next = Owners.of(view);
            if (next.equals(owners)) {
                return;
            }
            SlotMap map = ownership.map(); // which has heard of the view before
            if (next.meetings != owners.meetings) {
                held.set(0, HashSlots.COUNT);
            }
            IntStream.range(0, HashSlots.COUNT).filter(map::isOwn).forEach(held::set);
            owners = next;
            changes++;
            notifyAll();
        }

        private void follow() {
            long seen = 0;
            try {
                while (!closed) {
                    seen = awaitChange(seen);
                    BitSet moved = moved();
                    if (!moved.isEmpty() && give(moved, seen)) {
                        forget(moved, seen);
                    }
                }
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }

        /// Waits for a change, and until none has followed for a while.
        private synchronized long awaitChange(long seen) throws InterruptedException {
            while (changes == seen) {
                wait();
            }
            long last;
            do {
                last = changes;
                wait(SETTLE_MILLIS);
            } while (changes != last);
            return last;
        }

        /// Returns slots of which this server may have values, and another one is the owner.
        private synchronized BitSet moved() {
            SlotMap now = ownership.map();
            NodeInfo self = now.view().node(node);
            BitSet moved = new BitSet(HashSlots.COUNT);
            if (self != null && self.state() == NodeState.SERVING) {
                held.stream().filter(slot -> !now.isOwn(slot)).forEach(moved::set);
            }
            return moved;
        }

        private synchronized void forget(BitSet given, long seen) {
            if (changes == seen) {
                held.andNot(given);
            }
        }

        /// Returns whether nothing was left.
        private boolean give(BitSet moved, long seen) {
            long until = System.nanoTime() + limitNanos;
            Run run = values.begin(moved::get, () -> !closed && changes == seen && until - System.nanoTime() > 0);
            run.give();
            Outcome outcome = run.outcome();
            if (outcome.given() > 0 || outcome.left() > 0) {
                LOG.log(
                        Level.INFO,
                        "Gave %s values to the servers that own them now; %s are left"
                                .formatted(outcome.given(), outcome.left()));
            }
            return outcome.left() == 0;
        }

        @Override
        public void close() {
            closed = true;
            endListening.run();
            thread.interrupt();
            try {
                thread.join(END);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
