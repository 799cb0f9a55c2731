package io.kvcache.server.block;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.quota.Quota;
import io.kvcache.tiers.TieredKvCache;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The blocks of all tenants that have a quota, kept in step with the store by its events, which also say why a
/// block of any tenant has left.
///
/// **Threads.** Any; [#tick] one at a time.
public final class BlockQuotaTrackers {

    /// Events looked at in one go.
    private static final int EVENT_BATCH = 4096;

    /// Goes of one tick; what is left waits for the next one.
    private static final int MAX_BATCHES_PER_TICK = 64;

    private final TieredKvCache cache;
    private final EventStream events;
    private final IntFunction<Namespace> namespaceById;
    private final Predicate<Namespace> keyspaces;
    private final Map<String, BlockQuotaTracker> trackers = new LinkedHashMap<>();
    private final List<Namespace> namespaces = new ArrayList<>();
    private final BlockReadStats reads;
    private long next;

    /// @param quotas by tenant; those without a limit are left out
    /// @param names the namespaces that events name by number
    /// @param keyspaces namespaces whose objects keyspaces follow by themselves
    public BlockQuotaTrackers(
            TieredKvCache cache,
            Map<String, Quota> quotas,
            IntFunction<Namespace> names,
            Predicate<Namespace> keyspaces) {
        this.cache = cache;
        this.keyspaces = keyspaces;
        this.namespaceById = names;
        events = cache.events().withoutObjectPuts();
        next = events.nextSequence();
        reads = new BlockReadStats(quotas.keySet(), System::nanoTime);
        quotas.forEach((tenant, quota) -> {
            if (quota.isLimited()) {
                trackers.put(tenant, new BlockQuotaTracker(quota));
            }
        });
    }

    /// No tenant has a quota.
    public static BlockQuotaTrackers withoutQuotas(TieredKvCache cache) {
        return new BlockQuotaTrackers(cache, new HashMap<>(), _ -> Namespace.objects("none", "none"), _ -> true);
    }

    /// The blocks of a tenant, or null when it has no quota.
    @Nullable
    BlockQuotaTracker forTenant(String tenant) {
        return trackers.get(tenant);
    }

    /// A namespace is used from now on: what the store has of it counts.
    void onRegistered(Namespace namespace) {
        if (forTenant(namespace.tenant()) != null) {
            synchronized (namespaces) {
                namespaces.add(namespace);
            }
            trackStored(namespace);
        }
    }

    /// A namespace's name is forgotten.
    void onUnregistered(Namespace namespace) {
        synchronized (namespaces) {
            namespaces.remove(namespace);
        }
    }

    /// The store has told all that it had on disk: that counts from now on.
    public void onRecovered() {
        List<Namespace> all;
        synchronized (namespaces) {
            all = List.copyOf(namespaces);
        }
        all.forEach(this::trackStored);
    }

    private void trackStored(Namespace namespace) {
        BlockQuotaTracker stock = forTenant(namespace.tenant());
        if (stock != null) {
            stock.trackRecovered(cache.blocks(namespace), bytes(namespace));
        }
    }

    private static long bytes(Namespace namespace) {
        return NamespaceJson.shapeOf(namespace).bytes();
    }

    /// Hears what was stored and removed since the last time.
    public void tick() {
        int heard = EVENT_BATCH;
        for (int go = 0; heard == EVENT_BATCH && go < MAX_BATCHES_PER_TICK; go++) {
            EventBatch batch = events.since(next, EVENT_BATCH);
            next = batch.nextSequence();
            if (batch.hasGap()) {
                trackers.values().forEach(BlockQuotaTracker::removeAllGone);
                onRecovered();
            }
            batch.events().forEach(this::onEvent);
            heard = batch.events().size();
        }
    }

    private void onEvent(CacheEvent event) {
        Namespace namespace = namespaceById.apply(event.namespaceId());
        boolean objects = namespace.parts().isEmpty();
        if (objects && keyspaces.test(namespace)) {
            return;
        }
        BlockKey key = new BlockKey(event.keyHi(), event.keyLo());
        if (event.kind() != EventKind.STORED) {
            reads.recordRemoval(key, cause(event.kind()));
        }
        BlockQuotaTracker stock = objects ? null : forTenant(namespace.tenant());
        if (stock == null) {
            return;
        }
        if (event.kind() == EventKind.STORED) {
            BlockKey parent = event.depth() == 0 ? null : new BlockKey(event.parentHi(), event.parentLo());
            stock.track(cache.blocks(namespace), key, parent, bytes(namespace));
        } else {
            stock.removeIfGone(key);
        }
    }

    private static MissCauses.Cause cause(EventKind kind) {
        return switch (kind) {
            case DROPPED -> MissCauses.Cause.DELETED;
            case QUOTA -> MissCauses.Cause.QUOTA;
            case STORED, EVICTED, REPLACED -> MissCauses.Cause.EVICTED;
        };
    }

    /// Returns the outcomes of block reads, for all tenants.
    public BlockReadStats readStats() {
        return reads;
    }

    /// Returns the numbers of each tenant that has a quota, by tenant name.
    public Map<String, BlockQuotaTracker.Stats> stats() {
        Map<String, BlockQuotaTracker.Stats> all = new LinkedHashMap<>();
        trackers.forEach((tenant, stock) -> all.put(tenant, stock.stats()));
        return all;
    }
}
