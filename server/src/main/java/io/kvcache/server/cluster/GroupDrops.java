package io.kvcache.server.cluster;

import io.kvcache.cluster.DropLog;
import io.kvcache.cluster.DropRecord;
import io.kvcache.cluster.DropRecord.NamespaceDigest;
import io.kvcache.cluster.DropTarget;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.peer.PeeredKvCache;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Applies drops of the cluster to the stores of this server, and remembers them beside its first disk.
///
/// After a process has ended without a flush, the latest drops are applied again: their tombstones may not have
/// reached the disk. After damage to the file, all groups are dropped.
///
/// **Threads.** Any, once [#serveThrough] was called.
final class GroupDrops implements DropTarget, AutoCloseable {

    private static final Logger LOG = System.getLogger(GroupDrops.class.getName());

    /// Far longer than a tombstone needs to reach the disk.
    private static final long UNFLUSHED_MILLIS = TimeUnit.MINUTES.toMillis(10);

    private final List<Store> stores;
    private final DropLog log = new DropLog();
    private final @Nullable Path path;
    private @Nullable DropFile file;
    private volatile @Nullable PeeredKvCache served;

    /// To be applied again, as soon as the store knows the namespace.
    private final List<DropRecord> unflushed = new ArrayList<>();

    /// Drops of chains while disks were being read: of blocks below them the store may not have known the parents.
    private final List<DropRecord> early = new ArrayList<>();

    private final Set<Namespace> emptied = new HashSet<>();

    /// Whether all blocks have to go, as it cannot be known what was dropped.
    private boolean damaged;

    /// A store and the namespaces of groups in it, of which it forgets none.
    private static final class Store {

        /// Asking a store for its namespaces is not cheap, and a whole log may come at once.
        private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

        private final TieredKvCache cache;
        private final Map<NamespaceDigest, Namespace> known = new HashMap<>();
        private long lookedNanos = System.nanoTime() - LOOK_NANOS;
        private boolean lookedAfterRecovery;

        Store(TieredKvCache cache) {
            this.cache = cache;
        }

        synchronized @Nullable Namespace find(NamespaceDigest digest) {
            Namespace found = known.get(digest);
            if (found != null) {
                return found;
            }
            boolean recovered = !cache.isRecovering();
            if ((recovered && !lookedAfterRecovery) || System.nanoTime() - lookedNanos >= LOOK_NANOS) {
                lookedAfterRecovery = recovered;
                namespaces();
            }
            return known.get(digest);
        }

        synchronized List<Namespace> namespaces() {
            lookedNanos = System.nanoTime();
            cache.stats().namespaces().stream()
                    .map(NamespaceStats::namespace)
                    .filter(BlockGroup::isGroups)
                    .forEach(each -> known.putIfAbsent(NamespaceDigest.of(each), each));
            return List.copyOf(known.values());
        }
    }

    private GroupDrops(List<TieredKvCache> stores, @Nullable Path path) {
        this.stores = stores.stream().map(Store::new).toList();
        this.path = path;
    }

    /// Reads what has been applied before.
    ///
    /// @param stores the shared one first, which alone may have disks
    /// @param folder of the first disk; null for a server without disks, which remembers nothing and keeps nothing
    static GroupDrops open(List<TieredKvCache> stores, @Nullable Path folder) {
        GroupDrops drops = new GroupDrops(stores, folder == null ? null : folder.resolve(DropFile.NAME));
        drops.load();
        return drops;
    }

    private void load() {
        Path from = path;
        if (from == null) {
            return;
        }
        try {
            DropFile.Contents contents = DropFile.read(from);
            contents.records().forEach(log::add);
            damaged = contents.isDamaged();
            if (!contents.isFlushed()) {
                addUnflushed();
            }
        } catch (IOException unreadable) {
            LOG.log(Level.ERROR, from + " cannot be read: " + unreadable.getMessage(), unreadable);
            damaged = true;
        }
        if (damaged) {
            LOG.log(
                    Level.ERROR,
                    from + " is damaged. As it cannot be known what was dropped, this server drops all blocks of the"
                            + " cluster that it has");
        }
        try {
            file = DropFile.open(from, log.records());
        } catch (IOException unusable) {
            LOG.log(Level.WARNING, from + " cannot be written: " + unusable.getMessage());
        }
    }

    private void addUnflushed() {
        List<DropRecord> all = log.records();
        long newest = all.stream().mapToLong(DropRecord::millis).max().orElse(0);
        all.stream()
                .filter(drop -> drop.kind() != DropRecord.Kind.FLOOR && newest - drop.millis() < UNFLUSHED_MILLIS)
                .forEach(unflushed::add);
    }

    /// What has been applied before.
    DropLog log() {
        return log;
    }

    /// Names the cache through which clients use the first store.
    void serveThrough(PeeredKvCache cache) {
        served = cache;
    }

    private boolean isRecovering() {
        return stores.getFirst().cache.isRecovering();
    }

    @Override
    public boolean canDrop(NamespaceDigest namespace) {
        boolean recovered = !isRecovering(); // before it is looked up, or it could come between the two
        return recovered || stores.getFirst().find(namespace) != null;
    }

    @Override
    public void drop(DropRecord drop) {
        boolean recovering = isRecovering();
        apply(drop);
        if (recovering && !drop.isWhole()) {
            synchronized (this) {
                early.add(drop);
            }
        }
    }

    private void apply(DropRecord drop) {
        for (Store store : stores) {
            Namespace namespace = store.find(drop.namespace());
            if (namespace != null) {
                LOG.log(Level.DEBUG, "drops {0} of {1}, as another server has", drop.kind(), namespace);
                here(store, namespace, () -> drop(store.cache, namespace, drop));
            }
        }
    }

    private void here(Store store, Namespace namespace, Runnable drop) {
        PeeredKvCache fetching = served;
        if (fetching != null && store.equals(stores.getFirst())) {
            fetching.dropHere(namespace, drop);
        } else {
            drop.run();
        }
    }

    private static void drop(TieredKvCache store, Namespace namespace, DropRecord drop) {
        if (drop.isWhole()) {
            store.drop(namespace);
        } else {
            store.blocks(namespace).drop(drop.key());
        }
    }

    @Override
    public synchronized boolean repair() {
        if (!damaged && unflushed.isEmpty() && early.isEmpty()) {
            return true;
        }
        boolean recovering = isRecovering();
        unflushed.removeIf(drop -> {
            boolean can = !recovering || stores.getFirst().find(drop.namespace()) != null;
            if (can) {
                apply(drop);
            }
            return can;
        });
        if (damaged) {
            empty(stores.getFirst()); // the others begin empty
            damaged = recovering; // until the last disk has told which namespaces it has
        }
        if (!recovering) {
            early.forEach(this::apply);
            early.clear();
        }
        return !damaged && unflushed.isEmpty() && early.isEmpty();
    }

    @Override
    public synchronized void giveUp() {
        emptied.clear();
        damaged = true;
    }

    private void empty(Store store) {
        for (Namespace namespace : store.namespaces()) {
            if (emptied.add(namespace)) {
                here(store, namespace, () -> store.cache.drop(namespace));
            }
        }
    }

    @Override
    public synchronized void remember(List<DropRecord> added, @Nullable DropLog all) throws IOException {
        Path to = path;
        if (to == null) {
            return;
        }
        if (file != null) {
            file.append(added, all);
        } else if (all != null) {
            file = DropFile.open(to, all.records());
        } else {
            throw new IOException(to + " could not be written before");
        }
    }

    /// Notes that everything is on the disks, so that nothing has to be applied again at the next start.
    synchronized void markFlushed() {
        try {
            if (file != null && repair()) {
                file.markFlushed();
            }
        } catch (IOException failed) {
            LOG.log(Level.WARNING, "the last drops are applied again at the next start: " + failed.getMessage());
        }
    }

    @Override
    public synchronized void close() {
        try {
            if (file != null) {
                file.close();
            }
        } catch (IOException failed) {
            LOG.log(Level.WARNING, "drops of the cluster: " + failed.getMessage());
        }
    }
}
