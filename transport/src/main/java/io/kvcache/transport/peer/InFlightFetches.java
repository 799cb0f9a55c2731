package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;

/// Fetches from peers in flight, and drops, which they must not outlive. If a chain is dropped during a fetch, no
/// more of its blocks are stored. While peers still forget it, no fetch asks for it.
///
/// **Threads.** Any.
final class InFlightFetches {

    private final PeerClock clock;
    private final long never;
    private final List<Fetch> open = new ArrayList<>();
    private final List<Predicate<BlockChain>> drops = new ArrayList<>();

    InFlightFetches(PeerClock clock) {
        this.clock = clock;
        never = clock.deadlineAfter(Long.MAX_VALUE);
    }

    /// A fetch of blocks of one chain.
    final class Fetch implements AutoCloseable {

        private final BlockChain chain;

        /// Guarded by the enclosing object.
        private boolean dropped;

        private boolean storing;

        private Fetch(BlockChain chain) {
            this.chain = chain;
        }

        /// Returns whether fetched blocks will be kept, as far as is known.
        boolean isWanted() {
            synchronized (InFlightFetches.this) {
                return !dropped;
            }
        }

        /// Stores a block that has arrived, unless the chain was dropped. A drop that begins meanwhile waits until
        /// it is stored.
        ///
        /// @return false when it was dropped, else what the keeping answers
        boolean storeUnlessDropped(BooleanSupplier keeps) {
            synchronized (InFlightFetches.this) {
                storing = !dropped;
            }
            try {
                return storing && keeps.getAsBoolean();
            } finally {
                synchronized (InFlightFetches.this) {
                    storing = false;
                    clock.wake(InFlightFetches.this);
                }
            }
        }

        @Override
        public void close() {
            synchronized (InFlightFetches.this) {
                open.removeIf(each -> each.equals(this));
            }
        }
    }

    /// Begins a fetch of blocks of a chain.
    synchronized Fetch begin(BlockChain chain) {
        Fetch fetch = new Fetch(chain);
        fetch.dropped = drops.stream().anyMatch(drop -> drop.test(chain));
        open.add(fetch);
        return fetch;
    }

    /// Begins to drop a block of a chain and all behind it.
    ///
    /// @return to be run when peers have forgotten it, or could not be reached
    Runnable drop(BlockChain chain, int from) {
        return drop(other -> other.namespace().equals(chain.namespace()) && contains(other, chain, from));
    }

    /// Returns whether a chain contains a block of another one. It compares all places, as engine keys may repeat
    /// at another place.
    private static boolean contains(BlockChain chain, BlockChain of, int block) {
        boolean found = false;
        for (int index = 0; index < chain.length() && !found; index++) {
            found = chain.keyHi(index) == of.keyHi(block) && chain.keyLo(index) == of.keyLo(block);
        }
        return found;
    }

    /// Begins to drop all blocks of a namespace.
    ///
    /// @return as above
    Runnable drop(Namespace namespace) {
        return drop(other -> other.namespace().equals(namespace));
    }

    private synchronized Runnable drop(Predicate<BlockChain> what) {
        drops.add(what);
        for (Fetch each : open) {
            each.dropped |= what.test(each.chain);
        }
        awaitStores();
        return () -> endDrop(what);
    }

    private synchronized void endDrop(Predicate<BlockChain> what) {
        drops.removeIf(each -> each.equals(what));
    }

    /// Waits until no fetch stores a block of a dropped chain. That takes no longer than the copy of a block.
    private synchronized void awaitStores() {
        boolean interrupted = false;
        while (open.stream().anyMatch(each -> each.dropped && each.storing)) {
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
