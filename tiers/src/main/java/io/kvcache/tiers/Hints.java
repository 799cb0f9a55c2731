package io.kvcache.tiers;

import io.kvcache.core.Hint;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.HintApplier;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.Hints.SessionTracker.SessionTurn;
import io.kvcache.tiers.TtlQueue.ChainSuffixes;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Acts on hints, and holds what they ask to be held.
///
/// A pin is one store pin on the deepest resident block of a chain, or on an object. Pins that
/// ended, or whose blocks were dropped, are let go at the next hint, at the next drop, at the
/// next put that finds no room, and at the next look at the statistics.
final class Hints implements AutoCloseable {

    private final HostStore store;
    private final DiskLoader diskLoader;
    private final AccessRate rate;
    private final TtlQueue ttlQueue;
    private final SessionTracker sessions;
    private final LongAdder accepted = new LongAdder();
    private final LongAdder rejected = new LongAdder();
    private final LongAdder labelled = new LongAdder();
    private final LongAdder weighed = new LongAdder();
    private final TimedPins pins;
    private final ObjectHints objects;

    Hints(HostStore store, Clock clock, DiskLoader diskLoader, TtlQueue ttlQueue, TimedPins pins) {
        this.store = store;
        this.diskLoader = diskLoader;
        rate = new AccessRate(clock, store.hints()::clock);
        this.ttlQueue = ttlQueue;
        sessions = new SessionTracker();
        this.pins = pins;
        objects = new ObjectHints(store, diskLoader, rate, pins, ttlQueue);
    }

    boolean apply(Hint hint) {
        store.require(hint.chain().namespace());
        boolean done = dispatch(hint);
        (done ? accepted : rejected).increment();
        return done;
    }

    /// Acts on what is said of objects.
    ///
    /// @return of how many it was taken
    int apply(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        int done = objects.apply(namespace, keys, hint);
        if (hint instanceof ObjectHint.Label label) {
            labelled.add(done);
            done = isOfSession(namespace, keys, label.label()) ? keys.size() : done;
        } else if (hint instanceof ObjectHint.Weigh) {
            weighed.add(done);
        }
        (done > 0 ? accepted : rejected).increment();
        return done;
    }

    /// Returns whether a session is known to have come to objects, or to have ended with them.
    private boolean isOfSession(Namespace namespace, List<byte[]> names, RequestLabel label) {
        if (label.session() == 0) {
            return false;
        }
        NamespaceEntry entry = store.require(namespace);
        List<BlockKey> keys =
                names.stream().map(name -> BlockKey.ofObject(namespace, name)).toList();
        int group = store.share(entry).group();
        return sessions.update(group, new SessionTurn.Objects(store.hints(), entry, keys), label);
    }

    private boolean dispatch(Hint hint) {
        return switch (hint) {
            case Hint.Expect expect -> expect(expect);
            case Hint.Forget forget -> forget(forget.chain(), forget.from());
            case Hint.Pin pin -> pin(pin);
            case Hint.Label label -> label(label);
            case Hint.Weigh weigh -> weigh(weigh);
            case Hint.Expire expire -> expire(expire);
        };
    }

    private boolean expire(Hint.Expire hint) {
        ttlQueue.releaseExpired(); // expired hints take no place
        return ttlQueue.add(share(hint.chain()).group(), hint);
    }

    private boolean label(Hint.Label hint) {
        SessionTurn turn = new SessionTurn.Blocks(store.hints(), hint.chain(), 0);
        boolean known = sessions.update(share(hint.chain()).group(), turn, hint.label());
        int blocks = store.hints().label(hint.chain(), hint.from(), hint.label().reuseClass());
        labelled.add(blocks);
        return known || blocks > 0;
    }

    private boolean weigh(Hint.Weigh hint) {
        int[] halvings = hint.weights().stream().mapToInt(Hints::weightExponent).toArray();
        int blocks = store.hints().setWeights(hint.chain(), hint.from(), halvings);
        weighed.add(blocks);
        return blocks > 0;
    }

    /// The nearest power of two, as how often 1 is halved.
    static int weightExponent(float weight) {
        double exact = -Math.log(weight) / Math.log(2);
        return (int) Math.min(EvictionPolicy.MAX_HALVINGS, Math.round(exact));
    }

    private HostStore.MemoryShare share(BlockChain chain) {
        return store.share(store.require(chain.namespace()));
    }

    private boolean expect(Hint.Expect hint) {
        BlockChain chain = hint.chain();
        long uses = rate.expectedWithin(Timeouts.toNanos(hint.delay()));
        if (!store.hints().isWorthKeeping(store.require(chain.namespace()), uses)) {
            return false;
        }
        int blocks = store.lookup().match(chain, chain.length());
        if (!store.hints().expect(chain) && blocks > 0) {
            long handle = store.lookup().find(chain.keyHi(blocks - 1), chain.keyLo(blocks - 1));
            if (RecordHandle.isFound(handle)) {
                store.lookup().touch(handle);
            }
        }
        return blocks + diskLoader.prefetch(chain, blocks) > 0;
    }

    private boolean forget(BlockChain chain, int from) {
        store.hints().demote(chain, from);
        return true;
    }

    private boolean pin(Hint.Pin pin) {
        BlockChain chain = pin.chain();
        pins.releaseExpired();
        if (chain.length() == 0) {
            return false;
        }
        if (pin.time().isZero()) {
            var _ = pins.unpin(pin.key());
            return true;
        }
        long handle = store.lookup().pinDeepest(chain);
        if (!RecordHandle.isFound(handle)) {
            return false;
        }
        int record = RecordHandle.record(handle);
        long bytes = (store.records().depth(record) + 1L) * store.records().bytes(record);
        return pins.pin(pin.key(), new TimedPins.PinRequest(record, bytes), share(chain), Timeouts.toNanos(pin.time()));
    }

    /// Lets go of what was dropped, if anything was: there may be many pins.
    ///
    /// @return the same count
    long sweepPins(long dropped) {
        if (dropped > 0) {
            sweepPins();
        }
        return dropped;
    }

    /// Lets go of pins whose time is over, or whose blocks were dropped.
    void sweepPins() {
        pins.releaseExpired();
    }

    /// An object was dropped: its pin ends at once, without a look at the others.
    void onObjectDropped(BlockKey object) {
        var _ = pins.unpin(object);
    }

    /// Returns the outcomes of hints.
    HintStats stats() {
        ttlQueue.releaseExpired();
        sweepPins();
        return new HintStats(
                accepted.sum(),
                rejected.sum(),
                pins.count(),
                pins.bytes(),
                labelled.sum(),
                weighed.sum(),
                ttlQueue.waitingBlocks(),
                ttlQueue.expiredBlocks(),
                sessions.sessions(),
                sessions.released());
    }

    @Override
    public void close() {
        pins.close();
    }

    /// Acts on what callers say of objects.
    ///
    /// **Threads.** Any.
    private static final class ObjectHints {

        /// A slot has no less, so that pins of small objects are not without number.
        private static final long PAGE = 4096;

        private final HostStore store;
        private final DiskLoader diskLoader;
        private final AccessRate rate;
        private final TimedPins pins;
        private final TtlQueue ttlQueue;

        ObjectHints(HostStore store, DiskLoader diskLoader, AccessRate rate, TimedPins pins, TtlQueue ttlQueue) {
            this.store = store;
            this.diskLoader = diskLoader;
            this.rate = rate;
            this.pins = pins;
            this.ttlQueue = ttlQueue;
        }

        /// Acts on a hint.
        ///
        /// @return of how many objects it was taken
        int apply(Namespace namespace, List<byte[]> names, ObjectHint hint) {
            NamespaceEntry entry = store.require(namespace);
            List<BlockKey> keys = names.stream()
                    .map(name -> BlockKey.ofObject(namespace, name))
                    .toList();
            return switch (hint) {
                case ObjectHint.Expect expect ->
                    store.hints().expect(entry, keys, rate.expectedWithin(Timeouts.toNanos(expect.delay())))
                            + diskLoader.prefetch(keys);
                case ObjectHint.Forget _ -> store.hints().demote(entry, keys);
                case ObjectHint.Pin pin -> pin(entry, keys, Timeouts.toNanos(pin.time()));
                case ObjectHint.Label label ->
                    store.hints().label(entry, keys, label.label().reuseClass());
                case ObjectHint.Weigh weigh ->
                    store.hints().setWeights(entry, keys, Hints.weightExponent(weigh.weight()));
                case ObjectHint.Expire expire -> expire(entry, keys, Timeouts.toNanos(expire.delay()));
            };
        }

        private int pin(NamespaceEntry entry, List<BlockKey> keys, long forNanos) {
            HostStore.MemoryShare share = store.share(entry);
            int taken = 0;
            for (BlockKey key : keys) {
                taken += pin(entry, key, share, forNanos) ? 1 : 0;
            }
            return taken;
        }

        private boolean pin(NamespaceEntry entry, BlockKey key, HostStore.MemoryShare share, long forNanos) {
            if (forNanos == 0) {
                return pins.unpin(key);
            }
            long handle = store.lookup().peekKey(key.hi(), key.lo());
            if (!RecordHandle.isFound(handle)) {
                return false;
            }
            int record = RecordHandle.record(handle);
            if (!store.lookup().isObjectOf(entry, record)) {
                store.lookup().unpin(record);
                return false;
            }
            long bytes = (store.records().bytes(record) + PAGE - 1) / PAGE * PAGE;
            return pins.pin(key, new TimedPins.PinRequest(record, bytes), share, forNanos);
        }

        private int expire(NamespaceEntry entry, List<BlockKey> keys, long afterNanos) {
            if (keys.isEmpty()) {
                return 0;
            }
            ttlQueue.releaseExpired(); // expired hints take no place
            int group = store.share(entry).group();
            TtlQueue.TtlKey ttlKey = new TtlQueue.TtlKey(entry.namespace(), keys.getLast());
            TtlQueue.ReleaseAction releaseAction =
                    new TtlQueue.ReleaseAction(keys.size(), () -> store.hints().demote(entry, keys));
            return ttlQueue.add(group, ttlKey, releaseAction, afterNanos) ? keys.size() : 0;
        }
    }

    /// How many uses a store sees in a time, if it goes on as lately: since the last question but one, but for
    /// ten seconds at least where the store is open for so long.
    ///
    /// **Threads.** Any.
    private static final class AccessRate {

        private static final long PERIOD_NANOS = 10_000_000_000L;

        private final Clock clock;
        private final LongSupplier uses;
        private Reading start;
        private Reading latest;

        private record Reading(long nanos, long uses) {}

        /// @param uses seen so far
        AccessRate(Clock clock, LongSupplier uses) {
            this.clock = clock;
            this.uses = uses;
            start = new Reading(clock.nanos(), uses.getAsLong());
            latest = start;
        }

        /// Uses to come within a time; none within no time, whatever is measured.
        synchronized long expectedWithin(long nanos) {
            if (nanos == 0) {
                return 0;
            }
            Reading now = new Reading(clock.nanos(), uses.getAsLong());
            if (now.nanos - latest.nanos >= PERIOD_NANOS) {
                start = latest;
                latest = now;
            }
            long time = now.nanos - start.nanos;
            return time <= 0 ? 0 : (long) ((double) nanos / time * (now.uses - start.uses));
        }
    }

    /// Progress of sessions, so that the blocks a turn leaves behind of the one before it can be released.
    ///
    /// Keeps the last 1,024 blocks or objects of each session, and the most recently labelled sessions of each
    /// group of namespaces.
    ///
    /// **Threads.** Any.
    static final class SessionTracker {

        private final Map<Integer, Group> groups = new HashMap<>();
        private final Map<Namespace, Integer> groupOf = new HashMap<>();
        private long released;

        private record Session(Namespace namespace, long number) {}

        private record LastTurn(int turn, SessionTurn position) {

            int charge() {
                return ChainSuffixes.charge(position.size());
            }
        }

        /// The oldest label first.
        private static final class Group {
            final Map<Session, LastTurn> sessions = new LinkedHashMap<>();
            int charge;
        }

        /// A session has come to a turn: what it has left behind is let go.
        ///
        /// @param group of the turn's namespace
        /// @return whether the session is known now, or was and is over
        boolean update(int group, SessionTurn turn, RequestLabel label) {
            if (label.session() == 0 || label.turn() == 0 || turn.size() == 0) {
                return false;
            }
            LastTurn before = replaceTurn(group, turn, label);
            if (before != null && before.turn < label.turn()) {
                count(turn.releaseDropped(before.position));
            }
            return true;
        }

        /// Blocks and objects that became next victims so far.
        synchronized long released() {
            return released;
        }

        /// Sessions that are known.
        synchronized long sessions() {
            return groups.values().stream()
                    .mapToLong(group -> group.sessions.size())
                    .sum();
        }

        private synchronized void count(int left) {
            released += left;
        }

        private synchronized @Nullable LastTurn replaceTurn(int number, SessionTurn turn, RequestLabel label) {
            Group group = groups.computeIfAbsent(number, _ -> new Group());
            moveToGroup(turn.namespace(), number, group);
            Session session = new Session(turn.namespace(), label.session());
            LastTurn before = group.sessions.get(session);
            if (before != null && before.turn > label.turn()) {
                return null;
            }
            if (before != null) {
                group.sessions.remove(session);
                group.charge -= before.charge();
            }
            if (!label.last()) {
                LastTurn lastTurn = new LastTurn(label.turn(), turn.copyOfEnd());
                group.sessions.put(session, lastTurn);
                group.charge += lastTurn.charge();
                evictOldest(group);
            }
            return before;
        }

        /// A namespace is of a group, and may have been of another before: its sessions go along.
        private void moveToGroup(Namespace namespace, int number, Group group) {
            Integer before = groupOf.put(namespace, number);
            Group old = before == null || before == number ? null : groups.get(before);
            if (old == null) {
                return;
            }
            for (Iterator<Map.Entry<Session, LastTurn>> all =
                            old.sessions.entrySet().iterator();
                    all.hasNext(); ) {
                Map.Entry<Session, LastTurn> each = all.next();
                if (each.getKey().namespace.equals(namespace)) {
                    all.remove();
                    old.charge -= each.getValue().charge();
                    group.sessions.put(each.getKey(), each.getValue());
                    group.charge += each.getValue().charge();
                }
            }
            evictOldest(group);
        }

        private static void evictOldest(Group group) {
            Iterator<LastTurn> oldest = group.sessions.values().iterator();
            while (group.charge > ChainSuffixes.MAX_BLOCKS) {
                group.charge -= oldest.next().charge();
                oldest.remove();
            }
        }

        /// End of a chain, or list of objects, that a session has reached with one of its turns.
        sealed interface SessionTurn {

            /// Blocks or objects of a turn that are kept for the next one.
            int MAX_KEPT = 1024;

            Namespace namespace();

            /// Blocks or objects.
            int size();

            /// The end of it, with no memory shared with what it was made of.
            SessionTurn copyOfEnd();

            /// Lets go what an earlier turn had and this one has not; of blocks, but for what others have
            /// gone on from.
            ///
            /// @return of how many blocks or objects
            int releaseDropped(SessionTurn before);

            /// A chain of blocks.
            ///
            /// @param first the block of the session's chain that this one begins with
            record Blocks(HintApplier hintApplier, BlockChain chain, int first) implements SessionTurn {

                @Override
                public Namespace namespace() {
                    return chain.namespace();
                }

                @Override
                public int size() {
                    return chain.length();
                }

                @Override
                public SessionTurn copyOfEnd() {
                    int from = Math.max(0, chain.length() - MAX_KEPT);
                    return new Blocks(hintApplier, ChainSuffixes.of(chain, from), first + from);
                }

                @Override
                public int releaseDropped(SessionTurn before) {
                    return before instanceof Blocks blocks ? hintApplier.release(blocks.chain, blocks.keptBy(this)) : 0;
                }

                /// Leading blocks that another one has too.
                private int keptBy(Blocks later) {
                    int end = Math.min(chain.length(), later.chain.length() - first);
                    int index = 0;
                    while (index < end && chain.key(index).equals(later.chain.key(first + index))) {
                        index++;
                    }
                    return index;
                }
            }

            /// Objects, in the order in which they are read.
            record Objects(HintApplier forecast, NamespaceEntry entry, List<BlockKey> keys) implements SessionTurn {

                @Override
                public Namespace namespace() {
                    return entry.namespace();
                }

                @Override
                public int size() {
                    return keys.size();
                }

                @Override
                public SessionTurn copyOfEnd() {
                    int from = Math.max(0, keys.size() - MAX_KEPT);
                    return new Objects(forecast, entry, List.copyOf(keys.subList(from, keys.size())));
                }

                @Override
                public int releaseDropped(SessionTurn before) {
                    if (!(before instanceof Objects objects)) {
                        return 0;
                    }
                    Set<BlockKey> kept = new HashSet<>(keys);
                    return forecast.demote(
                            entry,
                            objects.keys.stream()
                                    .filter(key -> !kept.contains(key))
                                    .toList());
                }
            }
        }
    }
}
