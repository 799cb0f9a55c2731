package io.kvcache.tiers;

import io.kvcache.core.AccessListener;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Those who hear what a store is used for: mostly nobody.
///
/// They belong to the embedder and run on the threads of its callers. A failure of one must not fail a call that has
/// taken pins or room, so it ends here: the first of each listener is logged with its stack.
final class AccessListeners implements AccessListener {

    private static final Logger LOG = System.getLogger(TieredKvCache.class.getName());

    private final List<RegisteredListener> registrations = new CopyOnWriteArrayList<>();

    private static final class RegisteredListener {
        private final AccessListener listener;
        private final AtomicBoolean failed = new AtomicBoolean();

        RegisteredListener(AccessListener listener) {
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
        registrations.add(new RegisteredListener(Objects.requireNonNull(listener, "listener")));
    }

    boolean hasListeners() {
        return !registrations.isEmpty();
    }

    @Override
    public void onAccess(BlockChain chain, int from, int found, int blockBytes) {
        for (RegisteredListener each : registrations) {
            try {
                each.listener.onAccess(chain, from, found, blockBytes);
            } catch (RuntimeException failure) {
                each.logFailure(failure);
            }
        }
    }

    @Override
    public void onAccess(LookupKind lookupKind, Namespace namespace, BlockKey key, long bytes) {
        for (RegisteredListener each : registrations) {
            try {
                each.listener.onAccess(lookupKind, namespace, key, bytes);
            } catch (RuntimeException failure) {
                each.logFailure(failure);
            }
        }
    }

    @Override
    public void onPut(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces) {
        for (RegisteredListener each : registrations) {
            try {
                each.listener.onPut(namespace, key, after, bytes, replaces);
            } catch (RuntimeException failure) {
                each.logFailure(failure);
            }
        }
    }
}
