package io.kvcache.tiers;

import io.kvcache.core.Hint;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.time.Clock;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.SessionTracker.SessionTurn;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;

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
}
