package io.kvcache.tiers;

import io.kvcache.core.Clock;
import io.kvcache.core.Hint;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.Reserved;
import io.kvcache.core.tree.Handle;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Acts on hints, and holds the pins that hints ask for until their time is over.
///
/// A pin is one store pin on the deepest resident block of the chain. All of them together hold a quarter of host
/// memory at most, so that hints cannot bring a store to a halt. Ended pins are let go at the next hint, at the
/// next put that finds no room, and at the next look at the statistics.
final class Hints implements AutoCloseable {

    private static final int QUOTA_SHARE = 4;

    private final HostStore store;
    private final Clock clock;
    private final Onboarding onboarding;
    private final long quotaBytes;
    private final Map<BlockKey, Pinned> pins = new HashMap<>();
    private long pinnedBytes;

    private record Pinned(int record, long bytes, long start, long forNanos) {}

    Hints(HostStore store, Clock clock, Onboarding onboarding) {
        this.store = store;
        this.onboarding = onboarding;
        this.clock = clock;
        quotaBytes = store.capacityBytes() / QUOTA_SHARE;
    }

    boolean take(Hint hint) {
        return switch (hint) {
            case Hint.Expect expect -> expect(expect.chain());
            case Hint.Forget forget -> forget(forget.chain(), forget.from());
            case Hint.Pin pin -> pin(pin.chain(), pin.forNanos());
        };
    }

    private boolean expect(BlockChain chain) {
        int blocks = store.lookup().match(chain, chain.length());
        if (!store.expect(chain) && blocks > 0) {
            long handle = store.lookup().find(chain.keyHi(blocks - 1), chain.keyLo(blocks - 1));
            if (Handle.found(handle)) {
                store.lookup().touch(handle);
            }
        }
        return blocks + onboarding.expect(chain, blocks) > 0;
    }

    private boolean forget(BlockChain chain, int from) {
        store.demote(chain, from);
        return true;
    }

    private synchronized boolean pin(BlockChain chain, long forNanos) {
        sweep();
        if (chain.length() == 0) {
            return false;
        }
        letGo(pins.remove(chain.key(chain.length() - 1)));
        if (forNanos == 0) {
            return true;
        }
        long handle = store.lookup().pinDeepest(chain);
        if (!Handle.found(handle)) {
            return false;
        }
        int record = Handle.record(handle);
        long blocks = store.records().depth(record) + 1L;
        Pinned pinned = new Pinned(record, blocks * store.records().bytes(record), clock.nanos(), forNanos);
        if (pinnedBytes + pinned.bytes > quotaBytes) {
            store.lookup().unpin(record);
            return false;
        }
        pins.put(chain.key(chain.length() - 1), pinned);
        pinnedBytes += pinned.bytes;
        return true;
    }

    /// Asks for room, and once more without the pins whose time is over.
    Reserved room(Supplier<Reserved> ask) {
        Reserved reserved = ask.get();
        if (reserved.outcome() != PutOutcome.NO_ROOM) {
            return reserved;
        }
        sweep();
        return ask.get();
    }

    /// Lets go of pins whose time is over.
    synchronized void sweep() {
        if (pins.isEmpty()) {
            return;
        }
        long now = clock.nanos();
        for (Iterator<Pinned> all = pins.values().iterator(); all.hasNext(); ) {
            Pinned pinned = all.next();
            if (now - pinned.start >= pinned.forNanos) {
                all.remove();
                letGo(pinned);
            }
        }
    }

    private void letGo(@Nullable Pinned pinned) {
        if (pinned != null) {
            pinnedBytes -= pinned.bytes;
            store.lookup().unpin(pinned.record);
        }
    }

    @Override
    public synchronized void close() {
        pins.values().forEach(pinned -> store.lookup().unpin(pinned.record));
        pins.clear();
        pinnedBytes = 0;
    }
}
