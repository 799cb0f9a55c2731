package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropMark;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A connection from a client or a server to a [SimNode], which breaks and comes back as the weather is.
///
/// **Threads.** Actors of the simulation.
final class SimConnection implements ClusterConnection {

    /// After which a request has failed, beside what the caller allows.
    private static final long REQUEST = TimeUnit.MILLISECONDS.toNanos(300);

    private static final long LOOK = TimeUnit.MILLISECONDS.toNanos(50);
    private static final long QUIET_LOOK = TimeUnit.MILLISECONDS.toNanos(500);

    private final ClusterSimulation play;
    private final String from;
    private final SimNode node;
    private final boolean localOnly;
    private final SplittableRandom random;
    private final Cache cache;
    private long failed;
    private long heard;
    private boolean lifeSignRequested;
    private long brokenUntil;
    private boolean closed;

    /// @param localOnly whether the server asks no other one
    SimConnection(ClusterSimulation play, String from, SimNode node, boolean localOnly) {
        this.play = play;
        this.from = from;
        this.node = node;
        this.localOnly = localOnly;
        random = play.split();
        cache = new Cache(node.store);
    }

    private LocalKvCache target(SimNode.Run process) {
        return localOnly ? node.store : process.served;
    }

    /// Goes there and back.
    ///
    /// @return the process that answers, or null when none does in time
    private SimNode.@Nullable Run travel(long patienceNanos) {
        long latency = play.isFaultFree() ? 50_000 : random.nextLong(random.nextInt(10) == 0 ? 80_000_000 : 2_000_000);
        boolean there = isConnected();
        play.scheduler().sleep(Math.min(latency, patienceNanos));
        SimNode.Run process = play.reaches(from, node) ? node.answering() : null;
        boolean answered =
                there && process != null && latency <= patienceNanos && (play.isFaultFree() || random.nextInt(50) > 0);
        if (!answered) {
            boolean silent = node.process() != null && random.nextBoolean();
            play.scheduler().sleep(silent ? Math.max(0, patienceNanos - latency) : 0);
            failed++;
            brokenUntil = play.scheduler().now() + random.nextLong(40_000_000);
            play.scheduler().note(from + " hears nothing from " + node.name);
            return null;
        }
        heard++;
        return process;
    }

    @Override
    public long lifeSigns() {
        if (lifeSignRequested && isConnected() && node.answering() != null) {
            lifeSignRequested = false;
            heard++;
        }
        return heard;
    }

    @Override
    public void requestLifeSign() {
        lifeSignRequested = true;
    }

    private SimNode.Run requireAnswer(long patienceNanos) {
        SimNode.Run process = travel(patienceNanos);
        if (process == null) {
            throw new UncheckedIOException(new IOException("no answer from " + node.name));
        }
        return process;
    }

    @Override
    public boolean isConnected() {
        return !closed && play.scheduler().now() >= brokenUntil && node.process() != null && play.reaches(from, node);
    }

    @Override
    public void register(Namespace namespace) {
        node.store.register(namespace);
        var _ = requireAnswer(REQUEST);
    }

    @Override
    public KvCache cache() {
        return cache;
    }

    @Override
    public @Nullable ClusterView view(long knownDigest, Duration timeout) {
        SimNode.Run process = requireAnswer(REQUEST);
        long until = play.scheduler().now() + Timeouts.toNanos(timeout);
        while (process.keeper.view().digest() == knownDigest
                && play.scheduler().now() < until
                && node.process() == process
                && !closed) {
            play.scheduler().sleep(play.isFaultFree() ? QUIET_LOOK : LOOK);
        }
        ClusterView view = requireAnswer(REQUEST).keeper.view();
        return view.digest() == knownDigest ? null : view;
    }

    @Override
    public int drop(BlockChain chain, int first, DropMark mark) {
        SimNode.Run process = requireAnswer(REQUEST);
        return node.drop(
                process, mark, chain.keyLo(first), () -> target(process).drop(chain, first));
    }

    @Override
    public long drop(Namespace namespace, DropMark mark) {
        SimNode.Run process = requireAnswer(REQUEST);
        return node.drop(process, mark, 1, () -> target(process).drop(namespace));
    }

    @Override
    public boolean isMemoryMapped() {
        return false;
    }

    @Override
    public int openHandles() {
        return 0;
    }

    @Override
    public long failureCount() {
        return failed;
    }

    @Override
    public void close() {
        closed = true;
    }

    /// What the server does for this connection.
    private final class Cache extends ForwardingKvCache {

        Cache(LocalKvCache store) {
            super(store);
        }

        @Override
        public Match match(BlockChain chain) {
            SimNode.Run process = travel(REQUEST);
            return process == null ? Match.NOTHING : target(process).match(chain);
        }

        @Override
        public Match match(BlockChain chain, Duration timeout) {
            SimNode.Run process = travel(REQUEST + Timeouts.toNanos(timeout));
            return process == null ? Match.NOTHING : target(process).match(chain, timeout);
        }

        @Override
        public BlockTable acquire(BlockChain chain, int first, Duration timeout) {
            SimNode.Run process = travel(REQUEST + Timeouts.toNanos(timeout));
            return process == null ? BlockTable.empty(first) : target(process).acquire(chain, first, timeout);
        }

        @Override
        public PutSummary putAll(BlockChain chain, int first, List<MemorySegment> blocks, Duration timeout) {
            SimNode.Run process = travel(REQUEST);
            return process == null
                    ? new PutSummary(0, 0, PutOutcome.NO_ROOM)
                    : target(process).putAll(chain, first, blocks, timeout);
        }

        @Override
        public boolean hint(Hint hint) {
            SimNode.Run process = travel(REQUEST);
            return process != null && target(process).hint(hint);
        }

        @Override
        public int drop(BlockChain chain, int first) {
            return target(requireAnswer(REQUEST)).drop(chain, first);
        }

        @Override
        public long drop(Namespace namespace) {
            return target(requireAnswer(REQUEST)).drop(namespace);
        }

        @Override
        public void close() {
            SimConnection.this.close();
        }
    }
}
