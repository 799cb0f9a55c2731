package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/// A [SimPeerServer]'s cache as a client has it across a network with weather: answers are late, get lost after
/// what was asked for has happened, or never come; blocks come one by one, some wrong; a connection that
/// broke comes back by itself. It asks for nothing that was not registered with it, as the real one does.
final class SimPeerCache implements PeerCache {

    /// After which a question has failed, beside what the caller allows.
    private static final long REQUEST = TimeUnit.MILLISECONDS.toNanos(300);

    private final SimPeerServer server;
    private final String client;
    private final PeerSimulation play;
    private final SplittableRandom random;
    private final Set<Namespace> registered = new HashSet<>();
    private long brokenUntil;
    private long failed;
    private long heard;
    private boolean closed;

    SimPeerCache(SimPeerServer server, String client, PeerSimulation play) {
        this.server = server;
        this.client = client;
        this.play = play;
        random = play.split();
    }

    /// Goes there and back.
    ///
    /// @return whether the question arrived, and whether its answer did
    private RoundTrip travel(long patienceNanos) {
        long latency = play.isFaultFree() ? 50_000 : random.nextLong(random.nextInt(10) == 0 ? 80_000_000 : 2_000_000);
        boolean there = isConnected() && server.isReachableFrom(client);
        play.scheduler().sleep(Math.min(latency, patienceNanos));
        boolean arrived = there && server.isReachableFrom(client);
        boolean answered = arrived && latency <= patienceNanos && (play.isFaultFree() || random.nextInt(25) > 0);
        if (!answered) {
            waitAndFail(there ? patienceNanos - latency : 0);
        } else {
            heard++;
        }
        return new RoundTrip(arrived, answered);
    }

    private record RoundTrip(boolean arrived, boolean answered) {}

    /// Nobody answers: that is noticed at once where the connection broke, or when the time is over.
    private void waitAndFail(long patienceNanos) {
        play.scheduler().sleep(random.nextBoolean() ? 0 : Math.max(0, patienceNanos));
        failed++;
        brokenUntil = play.scheduler().now() + random.nextLong(40_000_000);
        play.scheduler().note("no answer from " + server.name);
    }

    @Override
    public boolean isConnected() {
        return !closed && play.scheduler().now() >= brokenUntil && server.isReachableFrom(client);
    }

    private void requireAnswer(long patienceNanos) {
        if (!travel(patienceNanos).answered) {
            throw new UncheckedIOException(new IOException("no answer"));
        }
    }

    @Override
    public void register(Namespace namespace) {
        requireAnswer(REQUEST);
        server.store.register(namespace);
        registered.add(namespace);
    }

    private void require(Namespace namespace) {
        if (closed || !registered.contains(namespace)) {
            throw new IllegalArgumentException(namespace + " is not registered with this cache");
        }
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
        require(chain.namespace());
        if (!travel(timeoutNanos + REQUEST).answered) {
            return BlockTable.empty(from);
        }
        BlockTable table = server.store.acquire(chain, from, KvCache.NO_WAIT);
        return new SimPeerTable(table, play, random.split(), () -> failed++);
    }

    @Override
    public int match(BlockChain chain, long timeoutNanos) {
        require(chain.namespace());
        return travel(timeoutNanos + REQUEST).answered
                ? server.store.match(chain).blocks()
                : 0;
    }

    @Override
    public void forget(BlockChain chain) {
        require(chain.namespace());
        if (travel(REQUEST).arrived) {
            server.store.hint(new Hint.Forget(chain, 0));
        }
    }

    @Override
    public PutSummary putAll(BlockChain chain, List<MemorySegment> blocks) {
        require(chain.namespace());
        RoundTrip roundTrip = travel(REQUEST);
        int stored = !roundTrip.answered && random.nextBoolean() ? random.nextInt(blocks.size() + 1) : blocks.size();
        PutSummary summary = roundTrip.arrived
                ? server.store.putAll(chain.prefix(stored), 0, blocks.subList(0, stored), KvCache.NO_WAIT)
                : new PutSummary(0, 0, PutOutcome.NO_ROOM);
        return roundTrip.answered ? summary : new PutSummary(0, 0, PutOutcome.NO_ROOM);
    }

    @Override
    public void drop(BlockChain chain, int from) {
        require(chain.namespace());
        requireAnswer(REQUEST);
        server.store.drop(chain, from);
    }

    @Override
    public void drop(Namespace namespace) {
        require(namespace);
        requireAnswer(REQUEST);
        server.store.drop(namespace);
    }

    @Override
    public long lifeSigns() {
        return heard;
    }

    @Override
    public void requestLifeSign() {}

    @Override
    public long failureCount() {
        return failed;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            play.closed(client, server);
        }
    }
}
