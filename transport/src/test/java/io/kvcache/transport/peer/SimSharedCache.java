package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Timeouts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/// The shared cache as a client has it across a network with weather: answers are late, get lost after what was
/// asked for has happened, or never come; blocks come one by one, some wrong.
final class SimSharedCache extends ForwardingKvCache {

    /// After which a request has failed, beside what the caller allows.
    private static final long REQUEST = TimeUnit.MILLISECONDS.toNanos(300);

    private final String client;
    private final NearSimulation play;
    private final SplittableRandom random;

    SimSharedCache(LocalKvCache store, String client, NearSimulation play) {
        super(store);
        this.client = client;
        this.play = play;
        random = play.split();
    }

    /// Goes there and back.
    ///
    /// @return whether the request arrived, and whether its answer did
    private RoundTrip travel(long patienceNanos) {
        long latency = play.isFaultFree() ? 50_000 : random.nextLong(random.nextInt(10) == 0 ? 80_000_000 : 2_000_000);
        boolean there = play.isReachableFrom(client);
        play.scheduler().sleep(Math.min(latency, patienceNanos));
        boolean arrived = there && play.isReachableFrom(client);
        boolean answered = arrived && latency <= patienceNanos && (play.isFaultFree() || random.nextInt(25) > 0);
        if (!answered) {
            long left = there ? patienceNanos - latency : 0;
            play.scheduler().sleep(random.nextBoolean() ? 0 : Math.max(0, left));
            play.scheduler().note("no answer");
        }
        return new RoundTrip(arrived, answered);
    }

    private record RoundTrip(boolean arrived, boolean answered) {}

    private void requireAnswer() {
        if (!travel(REQUEST).answered) {
            throw new UncheckedIOException(new IOException("no answer"));
        }
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        if (!travel(Timeouts.toNanos(timeout)).answered) {
            return BlockTable.empty(from);
        }
        BlockTable table = super.acquire(chain, from, KvCache.NO_WAIT);
        return new SimSharedTable(table, play, random.split());
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, Duration timeout) {
        RoundTrip roundTrip = travel(REQUEST);
        int stored = !roundTrip.answered && random.nextBoolean() ? random.nextInt(blocks.size() + 1) : blocks.size();
        PutSummary nothing = new PutSummary(0, 0, PutOutcome.NO_ROOM);
        PutSummary summary = roundTrip.arrived
                ? super.putAll(chain.prefix(from + stored), from, blocks.subList(0, stored), KvCache.NO_WAIT)
                : nothing;
        return roundTrip.answered ? summary : nothing;
    }

    @Override
    public int drop(BlockChain chain, int from) {
        requireAnswer();
        return super.drop(chain, from);
    }

    @Override
    public long drop(Namespace namespace) {
        requireAnswer();
        return super.drop(namespace);
    }

    @Override
    public void close() {
        // The simulation closes the store.
    }
}
