package io.kvcache.tiers;

import io.kvcache.core.UseListener;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/// Those who hear what a store is used for: mostly nobody.
final class UseListeners implements UseListener {

    private final List<UseListener> all = new CopyOnWriteArrayList<>();

    void add(UseListener listener) {
        all.add(listener);
    }

    boolean any() {
        return !all.isEmpty();
    }

    @Override
    public void asked(BlockChain chain, int from, int found, int blockBytes) {
        for (UseListener each : all) {
            each.asked(chain, from, found, blockBytes);
        }
    }

    @Override
    public void asked(Verb verb, Namespace namespace, BlockKey key, long bytes) {
        for (UseListener each : all) {
            each.asked(verb, namespace, key, bytes);
        }
    }

    @Override
    public void put(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces) {
        for (UseListener each : all) {
            each.put(namespace, key, after, bytes, replaces);
        }
    }
}
