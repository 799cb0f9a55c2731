package io.kvcache.server.block;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.miss.Departed;
import io.kvcache.server.quota.Quota;
import io.kvcache.tiers.TieredKvCache;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// The blocks of all tenants that have a quota, kept in step with the store by its events, which also say why a block
/// of any tenant has left.
///
/// **Threads.** Any; [#tick] one at a time.
public final class BlockStocks {

    /// Events looked at in one go.
    private static final int GO = 4096;

    /// Goes of one tick; what is left waits for the next one.
    private static final int MOST_GOES = 64;

    private final TieredKvCache cache;
    private final EventStream events;
    private final IntFunction<Namespace> names;
    private final Map<String, BlockStock> stocks = new LinkedHashMap<>();
    private final List<Namespace> registered = new ArrayList<>();
    private final BlockReads reads;
    private long next;

    /// @param quotas by tenant; those without a limit are left out
    /// @param names the namespaces that events name by number
    public BlockStocks(TieredKvCache cache, Map<String, Quota> quotas, IntFunction<Namespace> names) {
        this.cache = cache;
        this.names = names;
        events = cache.events().withoutObjectPuts();
        next = events.nextSequence();
        reads = new BlockReads(quotas.keySet());
        quotas.forEach((tenant, quota) -> {
            if (quota.limited()) {
                stocks.put(tenant, new BlockStock(quota));
            }
        });
    }

    /// Nobody has a quota.
    public static BlockStocks none(TieredKvCache cache) {
        return new BlockStocks(cache, new HashMap<>(), _ -> Namespace.objects("none", "none"));
    }

    /// The blocks of a tenant, or null when it has no quota.
    @Nullable
    BlockStock of(String tenant) {
        return stocks.get(tenant);
    }

    /// A namespace is used from now on: what the store has of it counts.
    void registered(Namespace namespace) {
        if (of(namespace.tenant()) != null) {
            synchronized (registered) {
                registered.add(namespace);
            }
            find(namespace);
        }
    }

    /// A namespace's name is forgotten.
    void forgotten(Namespace namespace) {
        synchronized (registered) {
            registered.remove(namespace);
        }
    }

    /// The store has told all that it had on disk: that counts from now on.
    public void recovered() {
        List<Namespace> all;
        synchronized (registered) {
            all = List.copyOf(registered);
        }
        all.forEach(this::find);
    }

    private void find(Namespace namespace) {
        BlockStock stock = of(namespace.tenant());
        if (stock != null) {
            stock.foundUnused(cache.blocks(namespace), bytes(namespace));
        }
    }

    private static long bytes(Namespace namespace) {
        return NamespaceText.shapeOf(namespace).bytes();
    }

    /// Hears what was stored and removed since the last time.
    public void tick() {
        int heard = GO;
        for (int go = 0; heard == GO && go < MOST_GOES; go++) {
            EventBatch batch = events.since(next, GO);
            next = batch.nextSequence();
            if (batch.hasGap()) {
                stocks.values().forEach(BlockStock::checkAll);
                recovered();
            }
            batch.events().forEach(this::hear);
            heard = batch.events().size();
        }
    }

    private void hear(CacheEvent event) {
        Namespace namespace = names.apply(event.namespaceId());
        if (namespace.parts().isEmpty()) {
            return;
        }
        BlockStock stock = of(namespace.tenant());
        BlockKey key = new BlockKey(event.keyHi(), event.keyLo());
        if (event.kind() != EventKind.STORED) {
            reads.left(key, cause(event.kind()));
        }
        if (stock == null) {
            return;
        }
        if (event.kind() == EventKind.STORED) {
            BlockKey parent = event.depth() == 0 ? null : new BlockKey(event.parentHi(), event.parentLo());
            stock.found(cache.blocks(namespace), key, parent, bytes(namespace));
        } else {
            stock.check(key);
        }
    }

    private static Departed.Cause cause(EventKind kind) {
        return switch (kind) {
            case DROPPED -> Departed.Cause.DELETED;
            case QUOTA -> Departed.Cause.QUOTA;
            case STORED, EVICTED, REPLACED -> Departed.Cause.EVICTED;
        };
    }

    /// What became of reads of blocks, whoever's.
    public BlockReads reads() {
        return reads;
    }

    /// What each tenant that has a quota has, by tenant.
    public Map<String, BlockStock.Stats> stats() {
        Map<String, BlockStock.Stats> all = new LinkedHashMap<>();
        stocks.forEach((tenant, stock) -> all.put(tenant, stock.stats()));
        return all;
    }
}
