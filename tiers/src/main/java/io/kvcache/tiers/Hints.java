package io.kvcache.tiers;

import io.kvcache.core.Clock;
import io.kvcache.core.Hint;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.Inspection;
import io.kvcache.core.store.Reserved;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.Handle;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Acts on hints, and holds the pins that hints ask for until their time is over.
///
/// A pin is one store pin on the deepest resident block of the chain. Those of each group of namespaces
/// hold a quarter of its share of host memory at most, for an hour at most, so that hints cannot bring a
/// store to a halt, and nobody takes another's part of that quarter. Pins that ended, or whose blocks were
/// dropped, are let go at the next hint, at the next drop, at the next put that finds no room, and at the
/// next look at the statistics.
final class Hints implements AutoCloseable {

    private static final int QUOTA_SHARE = 4;

    private static final long LONGEST_PIN_NANOS = TimeUnit.HOURS.toNanos(1);

    private final HostStore store;
    private final Clock clock;
    private final Onboarding onboarding;
    private final UseRate rate;
    private final Expiries expiries;
    private final SessionTails sessions;
    private final LongAdder taken = new LongAdder();
    private final LongAdder notTaken = new LongAdder();
    private final LongAdder labelled = new LongAdder();
    private final LongAdder weighed = new LongAdder();
    private final Map<BlockKey, Pinned> pins = new HashMap<>();
    private final Map<Integer, Long> bytesOfGroup = new HashMap<>();

    private record Pinned(int group, int record, long bytes, long start, long forNanos) {}

    Hints(HostStore store, Clock clock, Onboarding onboarding) {
        this.store = store;
        this.onboarding = onboarding;
        this.clock = clock;
        rate = new UseRate(clock, store.forecast()::uses);
        expiries = new Expiries(clock, store.forecast());
        sessions = new SessionTails(store.forecast());
    }

    boolean take(Hint hint) {
        store.require(hint.chain().namespace());
        boolean done = act(hint);
        (done ? taken : notTaken).increment();
        return done;
    }

    private boolean act(Hint hint) {
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
        expiries.sweep(); // what is over by now takes nobody's place
        return expiries.take(share(hint.chain()).group(), hint);
    }

    private boolean label(Hint.Label hint) {
        boolean known = sessions.take(share(hint.chain()).group(), hint.chain(), hint.label());
        int blocks =
                store.forecast().label(hint.chain(), hint.from(), hint.label().reuseClass());
        labelled.add(blocks);
        return known || blocks > 0;
    }

    private boolean weigh(Hint.Weigh hint) {
        int[] halvings = hint.weights().stream().mapToInt(Hints::halvings).toArray();
        int blocks = store.forecast().weigh(hint.chain(), hint.from(), halvings);
        weighed.add(blocks);
        return blocks > 0;
    }

    /// The nearest power of two, as how often 1 is halved.
    private static int halvings(float weight) {
        double exact = -Math.log(weight) / Math.log(2);
        return (int) Math.min(EvictionPolicy.MOST_HALVINGS, Math.round(exact));
    }

    private Inspection.Share share(BlockChain chain) {
        return store.inspection().share(store.require(chain.namespace()));
    }

    private boolean expect(Hint.Expect hint) {
        BlockChain chain = hint.chain();
        long uses = rate.in(hint.inNanos());
        if (!store.forecast().isWorthKeeping(store.require(chain.namespace()), uses)) {
            return false;
        }
        int blocks = store.lookup().match(chain, chain.length());
        if (!store.forecast().expect(chain) && blocks > 0) {
            long handle = store.lookup().find(chain.keyHi(blocks - 1), chain.keyLo(blocks - 1));
            if (Handle.found(handle)) {
                store.lookup().touch(handle);
            }
        }
        return blocks + onboarding.expect(chain, blocks) > 0;
    }

    private boolean forget(BlockChain chain, int from) {
        store.forecast().demote(chain, from);
        return true;
    }

    private synchronized boolean pin(Hint.Pin pin) {
        sweep();
        BlockChain chain = pin.chain();
        if (chain.length() == 0) {
            return false;
        }
        if (pin.forNanos() == 0) {
            letGo(pins.remove(pin.key()));
            return true;
        }
        long handle = store.lookup().pinDeepest(chain);
        if (!Handle.found(handle)) {
            return false;
        }
        int record = Handle.record(handle);
        Inspection.Share share = share(chain);
        long bytes = (store.records().depth(record) + 1L) * store.records().bytes(record);
        Pinned before = pins.get(pin.key());
        long others = bytesOfGroup.getOrDefault(share.group(), 0L) - (before == null ? 0 : before.bytes);
        if (others + bytes > share.bytes() / QUOTA_SHARE) {
            store.lookup().unpin(record);
            return false;
        }
        long time = Math.min(pin.forNanos(), LONGEST_PIN_NANOS);
        pins.put(pin.key(), new Pinned(share.group(), record, bytes, clock.nanos(), time));
        bytesOfGroup.merge(share.group(), bytes, Long::sum);
        letGo(before);
        return true;
    }

    /// Asks for room, which what is over by its time makes first, and once more without the pins
    /// whose time is over.
    Reserved room(Supplier<Reserved> ask) {
        expiries.sweep();
        Reserved reserved = ask.get();
        if (reserved.outcome() != PutOutcome.NO_ROOM) {
            return reserved;
        }
        sweep();
        return ask.get();
    }

    /// Lets go of what was dropped, if anything was: there may be many pins.
    ///
    /// @return the same count
    long sweep(long dropped) {
        if (dropped > 0) {
            sweep();
        }
        return dropped;
    }

    /// Lets go of pins whose time is over, or whose blocks were dropped.
    synchronized void sweep() {
        if (pins.isEmpty()) {
            return;
        }
        long now = clock.nanos();
        for (Iterator<Pinned> all = pins.values().iterator(); all.hasNext(); ) {
            Pinned pinned = all.next();
            if (now - pinned.start >= pinned.forNanos || isDropped(pinned.record)) {
                all.remove();
                letGo(pinned);
            }
        }
    }

    private boolean isDropped(int record) {
        return Control.state(store.records().control(record)) == Control.DOOMED;
    }

    private void letGo(@Nullable Pinned pinned) {
        if (pinned != null) {
            bytesOfGroup.merge(pinned.group, -pinned.bytes, Long::sum);
            store.lookup().unpin(pinned.record);
        }
    }

    /// What became of hints.
    synchronized HintStats stats() {
        expiries.sweep();
        sweep();
        return new HintStats(
                taken.sum(),
                notTaken.sum(),
                pins.size(),
                pins.values().stream().mapToLong(Pinned::bytes).sum(),
                labelled.sum(),
                weighed.sum(),
                expiries.waiting(),
                expiries.expired(),
                sessions.sessions(),
                sessions.released());
    }

    @Override
    public synchronized void close() {
        pins.values().forEach(this::letGo);
        pins.clear();
    }
}
