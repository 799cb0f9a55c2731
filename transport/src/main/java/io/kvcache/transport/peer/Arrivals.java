package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;

/// Blocks on their way here from peers, and drops, which they must not outlive: of a chain that was dropped
/// while a peer was asked for it nothing is kept any more, and while peers still forget it nobody asks.
///
/// **Threads.** Any.
final class Arrivals {

    private final PeerClock clock;
    private final long never;
    private final List<Arrival> open = new ArrayList<>();
    private final List<Predicate<BlockChain>> drops = new ArrayList<>();

    Arrivals(PeerClock clock) {
        this.clock = clock;
        never = clock.after(Long.MAX_VALUE);
    }

    /// One question to peers.
    final class Arrival implements AutoCloseable {

        private final BlockChain chain;

        /// Guarded by the arrivals.
        private boolean dropped;

        private boolean keeping;

        private Arrival(BlockChain chain) {
            this.chain = chain;
        }

        /// Whether what comes will be kept, as far as is known.
        boolean wanted() {
            synchronized (Arrivals.this) {
                return !dropped;
            }
        }

        /// Makes a block that has come one of the store's, unless it was dropped; a drop that begins meanwhile
        /// waits for that.
        ///
        /// @return false when it was dropped, else what the keeping answers
        boolean keep(BooleanSupplier keeps) {
            synchronized (Arrivals.this) {
                keeping = !dropped;
            }
            try {
                return keeping && keeps.getAsBoolean();
            } finally {
                synchronized (Arrivals.this) {
                    keeping = false;
                    clock.wake(Arrivals.this);
                }
            }
        }

        @Override
        public void close() {
            synchronized (Arrivals.this) {
                open.removeIf(each -> each.equals(this));
            }
        }
    }

    /// Somebody begins to ask peers for blocks of a chain.
    synchronized Arrival begin(BlockChain chain) {
        Arrival arrival = new Arrival(chain);
        arrival.dropped = drops.stream().anyMatch(drop -> drop.test(chain));
        open.add(arrival);
        return arrival;
    }

    /// A block of a chain is being dropped, and all behind it.
    ///
    /// @return to be run when peers have forgotten it, or could not be reached
    Runnable drop(BlockChain chain, int from) {
        return drop(other -> other.namespace().equals(chain.namespace()) && has(other, chain, from));
    }

    /// Whether a block of one chain is one of another's; where keys are an engine's, at any place
    /// of it.
    private static boolean has(BlockChain chain, BlockChain of, int block) {
        boolean found = false;
        for (int index = 0; index < chain.length() && !found; index++) {
            found = chain.keyHi(index) == of.keyHi(block) && chain.keyLo(index) == of.keyLo(block);
        }
        return found;
    }

    /// All blocks of a namespace are being dropped.
    ///
    /// @return as above
    Runnable drop(Namespace namespace) {
        return drop(other -> other.namespace().equals(namespace));
    }

    private synchronized Runnable drop(Predicate<BlockChain> what) {
        drops.add(what);
        for (Arrival each : open) {
            each.dropped |= what.test(each.chain);
        }
        awaitKept();
        return () -> dropped(what);
    }

    private synchronized void dropped(Predicate<BlockChain> what) {
        drops.removeIf(each -> each.equals(what));
    }

    /// Waits until nothing that was dropped is being kept: no longer than the copy of a block takes.
    private synchronized void awaitKept() {
        boolean interrupted = false;
        while (open.stream().anyMatch(each -> each.dropped && each.keeping)) {
            try {
                clock.await(this, never);
            } catch (InterruptedException stopped) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
