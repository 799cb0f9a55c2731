package io.kvcache.tiers;

import io.kvcache.core.AccessListener;
import io.kvcache.core.ChainListener;
import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.HostStore;
import io.kvcache.tiers.movement.TierScheduler;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// What the operations of an embedded store have in common.
///
/// @param tierScheduler null of a store without disks
/// @param prefill what computing takes, or null when unknown
/// @param prefetch whether blocks that are likely to be read next are brought from disk
/// @param listeners of accesses
record StoreContext(
        HostStore store,
        OpenHandles openHandles,
        boolean checked,
        Clock clock,
        @Nullable TierScheduler tierScheduler,
        @Nullable PrefillCost prefill,
        boolean prefetch,
        AccessListeners listeners) {

    /// The time during which a caller may use the segments that it is given. In a checked store they throw
    /// once the scope is closed, instead of showing the next owner's bytes. That costs ten to twenty
    /// microseconds a scope, so an unchecked store has none and hands the slot's memory out as it is.
    @Nullable
    Arena openScope() {
        return checked ? Arena.ofShared() : null;
    }

    /// The same memory, for as long as a scope.
    @SuppressWarnings("restricted") // the span and its length stay what the slab pool has bounded
    static MemorySegment bind(@Nullable Arena scope, MemorySegment slot) {
        return scope == null ? slot : slot.reinterpret(scope, null);
    }

    /// @throws IllegalStateException when another thread is inside an access at this moment
    static void close(@Nullable Arena scope) {
        if (scope != null) {
            scope.close();
        }
    }

    /// Returns whether a disk is still recovering.
    boolean isRecovering() {
        return tierScheduler != null && tierScheduler.isRecovering();
    }

    /// A record's slot was filled by a writer, or will not be.
    void notifyChanged(int record) {
        if (tierScheduler != null) {
            tierScheduler.loadListeners().notifyChanged(record);
        }
    }

    /// The access listeners of a store; usually none.
    ///
    /// They belong to the embedder and run on the threads of its callers. A failure of one must not fail a call
    /// that has taken pins or room, so it ends here: the first of each listener is logged with its stack.
    static final class AccessListeners implements AccessListener {

        private static final Logger LOG = System.getLogger(StoreContext.class.getName());

        private final List<RegisteredListener<AccessListener>> registrations = new CopyOnWriteArrayList<>();
        private final List<RegisteredListener<ChainListener>> chainRegistrations = new CopyOnWriteArrayList<>();

        private static final class RegisteredListener<L extends ChainListener> {
            private final L listener;
            private final AtomicBoolean failed = new AtomicBoolean();

            RegisteredListener(L listener) {
                this.listener = listener;
            }

            void logFailure(RuntimeException failure) {
                if (failed.compareAndSet(false, true)) {
                    LOG.log(
                            Level.WARNING,
                            "The use listener " + listener.getClass().getName()
                                    + " threw; the store goes on, and logs no further failure of this listener",
                            failure);
                }
            }
        }

        void add(AccessListener listener) {
            registrations.add(new RegisteredListener<>(Objects.requireNonNull(listener, "listener")));
        }

        void addForChains(ChainListener listener) {
            chainRegistrations.add(new RegisteredListener<>(Objects.requireNonNull(listener, "listener")));
        }

        /// Returns whether any listener hears of puts.
        boolean hasListeners() {
            return !registrations.isEmpty();
        }

        @Override
        public void onAccess(BlockChain chain, int from, int found, int blockBytes) {
            tell(registrations, chain, from, found, blockBytes);
            tell(chainRegistrations, chain, from, found, blockBytes);
        }

        private static <L extends ChainListener> void tell(
                List<RegisteredListener<L>> registrations, BlockChain chain, int from, int found, int blockBytes) {
            for (RegisteredListener<L> each : registrations) {
                try {
                    each.listener.onAccess(chain, from, found, blockBytes);
                } catch (RuntimeException failure) {
                    each.logFailure(failure);
                }
            }
        }

        @Override
        public void onAccess(LookupKind lookupKind, Namespace namespace, BlockKey key, long bytes) {
            for (RegisteredListener<AccessListener> each : registrations) {
                try {
                    each.listener.onAccess(lookupKind, namespace, key, bytes);
                } catch (RuntimeException failure) {
                    each.logFailure(failure);
                }
            }
        }

        @Override
        public void onPut(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces) {
            for (RegisteredListener<AccessListener> each : registrations) {
                try {
                    each.listener.onPut(namespace, key, after, bytes, replaces);
                } catch (RuntimeException failure) {
                    each.logFailure(failure);
                }
            }
        }
    }

    /// Counts the claims on the store's memory, and rejects new claims once the store closes.
    ///
    /// Opening adds first and looks for the bar afterwards; closing sets the bar first and sums afterwards. So
    /// either the opener sees the bar, or the closer sees the opener.
    static final class OpenHandles {

        private final boolean trackStacks;
        private final LongAdder open = new LongAdder();
        private final LongAdder opened = new LongAdder();
        private final Set<OpenHandle> held = ConcurrentHashMap.newKeySet();
        private final AtomicBoolean closed = new AtomicBoolean();

        /// @param tracks whether to remember each claim and its stack
        OpenHandles(boolean tracks) {
            this.trackStacks = tracks;
        }

        /// @throws IllegalStateException when the store is closed
        void requireOpen() {
            if (closed.get()) {
                throw new IllegalStateException("the store is closed");
            }
        }

        /// Takes a claim.
        ///
        /// @throws IllegalStateException when the store is closed
        OpenHandle acquire(Object what) {
            open.increment();
            if (closed.get()) {
                open.decrement();
                requireOpen();
            }
            if (!trackStacks) {
                return OpenHandle.UNTRACKED;
            }
            opened.increment();
            OpenHandle openHandle = new OpenHandle(opened.sum(), what, new Throwable("held since here"));
            held.add(openHandle);
            return openHandle;
        }

        /// Gives a claim back.
        void release(OpenHandle openHandle) {
            if (trackStacks) {
                held.remove(openHandle);
            }
            open.decrement();
        }

        /// Bars new claims; answers false when that was done before.
        boolean stopAccepting() {
            return closed.compareAndSet(false, true);
        }

        long openCount() {
            return open.sum();
        }

        /// Describes the open claims for a log line, with the stack of the oldest when holders are tracked.
        IllegalStateException leakReport() {
            String counted = openCount() + " tables, views or writers are open";
            if (!trackStacks) {
                return new IllegalStateException(counted + "; trackHolders(true) shows who took them");
            }
            return held.stream()
                    .min(Comparator.comparingLong(OpenHandle::number))
                    .map(oldest -> new IllegalStateException(
                            counted + "; the oldest: " + oldest.description(), oldest.acquiredAt()))
                    .orElseGet(() -> new IllegalStateException(counted));
        }

        /// A claim on the store's memory: an open table, view or writer.
        ///
        /// @param number counts claims from 0; the lowest is the oldest
        /// @param description what is held, for the report
        /// @param acquiredAt the stack of the thread that took it, when the store tracks its holders
        record OpenHandle(
                long number, Object description, @Nullable Throwable acquiredAt) {

            /// Stands for every claim when the store does not track them.
            static final OpenHandle UNTRACKED = new OpenHandle(-1, "", null);
        }
    }
}
