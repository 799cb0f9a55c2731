package io.kvcache.tiers;

import io.kvcache.core.Hint;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.time.Clock;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordHandle;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;

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

    Hints(HostStore store, Clock clock, DiskLoader diskLoader, TtlQueue ttlQueue) {
        this.store = store;
        this.diskLoader = diskLoader;
        rate = new AccessRate(clock, store.hints()::clock);
        this.ttlQueue = ttlQueue;
        sessions = new SessionTracker();
        pins = new TimedPins(store, clock);
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

    /// Whether a session is known to have come to objects, or to have ended with them.
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
        ttlQueue.releaseExpired(); // what is over by now takes nobody's place
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

    /// Asks for room, which what is over by its time makes first, and once more without the pins
    /// whose time is over.
    PutReservation reserve(Supplier<PutReservation> ask) {
        ttlQueue.releaseExpired();
        PutReservation putReservation = ask.get();
        if (putReservation.outcome() != PutOutcome.NO_ROOM) {
            return putReservation;
        }
        sweepPins();
        return ask.get();
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

    /// What became of hints.
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
}
