package io.kvcache.server.cluster;

import io.kvcache.cluster.DropExchange.DropTarget;
import io.kvcache.cluster.DropLog;
import io.kvcache.cluster.DropRecord;
import io.kvcache.cluster.DropRecord.NamespaceDigest;
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
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Applies drops of the cluster to the stores of this server, and remembers them beside its first disk.
///
/// What has been applied here is made durable by the disks soon after, or by a flush before, and noted as such.
/// After a process that was killed, the drops that were not noted are applied again: their tombstones may not
/// have reached the disks. No other drop is, so nothing goes that was put after a drop and flushed. After damage
/// to the file, all groups are dropped.
///
/// **Threads.** Any, once [#serveThrough] was called.
final class GroupDrops implements DropTarget, AutoCloseable {

    private static final Logger LOG = System.getLogger(GroupDrops.class.getName());

    /// Between two attempts to make drops durable.
    private static final long SYNC_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final List<Store> stores;
    private final DropLog log = new DropLog();
    /// Null without disks.
    private final @Nullable DropFile file;

    private volatile @Nullable PeeredKvCache served;

    /// To be applied again, as soon as the store knows the namespace.
    private final List<DropRecord> again = new ArrayList<>();

    private int againCount;
    private long againBlocks;

    /// Drops of chains while disks were being read: of blocks below them the store may not have known the
    /// parents.
    private final List<DropRecord> early = new ArrayList<>();

    private final Set<Namespace> emptied = new HashSet<>();

    /// Whether all blocks have to go, as it cannot be known what was dropped.
    private boolean damaged;

    private @Nullable Sync sync;
    private long syncedNanos = System.nanoTime() - SYNC_PAUSE_NANOS;

    /// Drops that the disks are making durable.
    private record Sync(List<DropRecord> drops, Supplier<Optional<Boolean>> durable) {}

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

    private GroupDrops(List<TieredKvCache> stores, @Nullable DropFile file) {
        this.stores = stores.stream().map(Store::new).toList();
        this.file = file;
    }

    /// Reads what has been applied before.
    ///
    /// @param stores the shared one first, which alone may have disks
    /// @param folder of the first disk; null for a server without disks, which remembers nothing and keeps
    ///     nothing
    static GroupDrops open(List<TieredKvCache> stores, @Nullable Path folder) {
        if (folder == null) {
            return new GroupDrops(stores, null);
        }
        Path path = folder.resolve(DropFile.NAME);
        DropFile file = DropFile.read(path);
        GroupDrops drops = new GroupDrops(stores, file);
        drops.begin(path, file);
        stores.getFirst().addFlushListener(drops::onFlush);
        return drops;
    }

    private void begin(Path path, DropFile read) {
        read.records().forEach(log::add);
        damaged = read.isDamaged();
        again.addAll(read.unsynced());
        againCount = again.size();
        if (damaged) {
            LOG.log(
                    Level.ERROR,
                    path + " is damaged. As it cannot be known what was dropped, this server drops all blocks of the"
                            + " cluster that it has");
        }
        try {
            read.rewrite();
        } catch (IOException unusable) {
            LOG.log(Level.WARNING, path + " cannot be written: " + unusable.getMessage());
        }
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
    public long drop(DropRecord drop) {
        boolean recovering = isRecovering();
        long blocks = apply(drop);
        if (recovering && !drop.isWhole()) {
            synchronized (this) {
                early.add(drop);
            }
        }
        return blocks;
    }

    /// Returns how many blocks went.
    private long apply(DropRecord drop) {
        AtomicLong blocks = new AtomicLong();
        for (Store store : stores) {
            Namespace namespace = store.find(drop.namespace());
            if (namespace != null) {
                LOG.log(Level.DEBUG, "drops {0} of {1}, as another server has", drop.kind(), namespace);
                here(store, namespace, () -> blocks.addAndGet(drop(store.cache, namespace, drop)));
            }
        }
        return blocks.get();
    }

    private void here(Store store, Namespace namespace, Runnable drop) {
        PeeredKvCache fetching = served;
        if (fetching != null && store.equals(stores.getFirst())) {
            fetching.dropHere(namespace, drop);
        } else {
            drop.run();
        }
    }

    private static long drop(TieredKvCache store, Namespace namespace, DropRecord drop) {
        return drop.isWhole() ? store.drop(namespace) : store.dropBlock(namespace, drop.key());
    }

    @Override
    public synchronized boolean repair() {
        boolean repaired = isRepaired();
        if (!repaired) {
            repairNow();
            repaired = isRepaired();
        }
        if (repaired) {
            makeDurable();
        }
        return repaired;
    }

    private boolean isRepaired() {
        return !damaged && again.isEmpty() && early.isEmpty();
    }

    private void repairNow() {
        boolean recovering = isRecovering();
        again.removeIf(drop -> {
            boolean can = !recovering || stores.getFirst().find(drop.namespace()) != null;
            if (can) {
                againBlocks += apply(drop);
                if (recovering && !drop.isWhole()) {
                    early.add(drop);
                }
            }
            return can;
        });
        if (damaged) {
            empty(stores.getFirst()); // the others begin empty
            damaged = recovering; // until the last disk has told which namespaces it has
        }
        if (!recovering) {
            early.forEach(drop -> againBlocks += apply(drop));
            early.clear();
        }
        if (againCount > 0 && isRepaired()) {
            LOG.log(
                    Level.INFO,
                    "The process before this one ended before its last drops were surely on the disks: applied %s of them again, and so dropped %s blocks"
                            .formatted(againCount, againBlocks));
            againCount = 0;
        }
    }

    /// Has the disks make durable what was applied, as far as possible now.
    private void makeDurable() {
        if (file == null) {
            return;
        }
        Sync running = sync;
        Optional<Boolean> durable = running == null ? Optional.empty() : running.durable.get();
        if (running == null) {
            List<DropRecord> applied = file.unsynced();
            if ((!applied.isEmpty() || file.isDamaged()) && System.nanoTime() - syncedNanos >= SYNC_PAUSE_NANOS) {
                sync = new Sync(applied, stores.getFirst().cache.flushDrops());
            }
        } else if (durable.isPresent()) {
            sync = null;
            syncedNanos = System.nanoTime();
            if (durable.get()) {
                markDurable(running.drops);
                markRepaired();
            }
        }
    }

    private void markRepaired() {
        try {
            if (file != null && file.isDamaged()) {
                file.markRepaired();
            }
        } catch (IOException failed) {
            LOG.log(
                    Level.WARNING,
                    "all blocks of the cluster are dropped again at the next start: " + failed.getMessage());
        }
    }

    /// A flush begins. What it makes durable need not be applied again.
    private synchronized Runnable onFlush() {
        List<DropRecord> applied = file == null ? List.of() : new ArrayList<>(file.unsynced());
        applied.removeAll(again);
        applied.removeAll(early);
        return () -> markDurable(applied);
    }

    private synchronized void markDurable(List<DropRecord> drops) {
        try {
            if (file != null && !drops.isEmpty()) {
                file.markSynced(drops);
            }
        } catch (IOException failed) {
            LOG.log(Level.WARNING, "the last drops are applied again at the next start: " + failed.getMessage());
        }
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
    public synchronized void remember(List<DropRecord> added) throws IOException {
        if (file != null) {
            file.add(added);
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
