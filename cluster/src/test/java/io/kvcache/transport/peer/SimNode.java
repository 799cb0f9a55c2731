package io.kvcache.transport.peer;

import io.kvcache.cluster.SimulatedMembership;
import io.kvcache.cluster.ViewKeeper;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A server of a [ClusterSimulation]. Its store outlives its processes, as a disk does; the simulation empties it where
/// a process is to lose all that it had.
final class SimNode {

    final String name;
    final TieredKvCache store;

    /// Digest of the drops in its log, which is on a disk too.
    private long drops;

    private @Nullable Run process;

    SimNode(String name, TieredKvCache store) {
        this.name = name;
        this.store = store;
    }

    /// A run of the server from its start to its end.
    static final class Run {

        final SimulatedMembership membership;
        final ViewKeeper keeper;
        final PeeredKvCache served;
        boolean stopped;

        Run(SimulatedMembership membership, ViewKeeper keeper, PeeredKvCache served) {
            this.membership = membership;
            this.keeper = keeper;
            this.served = served;
        }
    }

    /// Returns the process, or null while none runs.
    @Nullable
    Run process() {
        return process;
    }

    /// Returns the process if it answers.
    @Nullable
    Run answering() {
        Run now = process;
        return now == null || now.stopped ? null : now;
    }

    /// Starts a process that joins.
    void start(ClusterSimulation play) {
        SimulatedMembership membership = play.network().member();
        ViewKeeper keeper = new ViewKeeper(
                ClusterSimulation.CLUSTER,
                membership,
                ClusterSimulation.FAILURE_AFTER,
                () -> play.scheduler().now());
        PeeredKvCache served = PeeredKvCache.ofCluster(
                new Borrowed(store),
                new PeeredKvCache.Handover(name, keeper, Duration.ofSeconds(20), () -> drops),
                play.dependencies(name));
        process = new Run(membership, keeper, served);
        keeper.start(new NodeInfo(
                ClusterNode.named(name),
                play.millis(),
                NodeState.JOINING,
                name,
                "",
                "test",
                play.replicas().features(),
                drops));
    }

    /// Drops something as a server does: it is in the log before the store applies it, and in what the others are
    /// told after that.
    ///
    /// @param from key of the first block, as a client drops each group of a chain; 1 for a namespace
    <T> T drop(Run running, DropMark mark, long from, Supplier<T> drop) {
        drops ^= mark.id() * (from | 1);
        T dropped = drop.get();
        running.keeper.update(running.keeper.self().withDrops(drops));
        return dropped;
    }

    /// Ends the process, which says nothing to the others.
    void crash(ClusterSimulation play) {
        Run was = process;
        process = null;
        if (was != null) {
            play.network().crash(was.membership);
            was.served.close();
        }
    }

    /// Ends the process, which leaves.
    void leave() {
        Run was = process;
        process = null;
        if (was != null) {
            was.keeper.close();
            was.served.close();
        }
    }

    /// Forgets all that it had.
    void lose() {
        store.drop(BlockGroup.namespace(ClusterSimulation.SPACE));
    }

    /// A store that outlives the process.
    private static final class Borrowed extends ForwardingKvCache {

        Borrowed(LocalKvCache store) {
            super(store);
        }

        @Override
        public void close() {
            // The simulation closes it.
        }
    }
}
