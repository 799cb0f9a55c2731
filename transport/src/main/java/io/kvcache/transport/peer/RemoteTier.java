package io.kvcache.transport.peer;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.ChunkedCrc;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Peers as a tier below an embedded store: what is missing there is asked of the peer whose group it is,
/// and what comes becomes a block of the store, with its checksum.
///
/// One question is asked once, whoever waits for it (single flight). What no peer had is not asked for
/// again for a moment.
///
/// **Threads.** Any; whoever asks waits here, no longer than it says.
final class RemoteTier implements AutoCloseable {

    private static final int MOST_MISSES = 100_000;

    private final KvCache local;
    private final List<Peer> peers;
    private final Rendezvous rendezvous;
    private final int replicas;
    private final PeerClock clock;
    private final Cache<BlockKey, Boolean> misses;
    private final Map<BlockKey, Flight> flights = new ConcurrentHashMap<>();
    private final Arrivals arrivals;
    private final LongAdder corrupt = new LongAdder();

    RemoteTier(KvCache local, List<Peer> peers, PeerOptions options, PeerClock clock) {
        this.local = local;
        this.peers = List.copyOf(peers);
        this.clock = clock;
        arrivals = new Arrivals(clock);
        replicas = Math.min(options.replicas(), peers.size());
        rendezvous = new Rendezvous(peers.stream().map(Peer::name).toList());
        misses = Caffeine.newBuilder()
                .maximumSize(MOST_MISSES)
                .expireAfterWrite(options.missLasts())
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
    }

    /// The peers that keep a group, the first choice first.
    private List<Peer> keepers(BlockKey key) {
        return IntStream.of(rendezvous.order(key))
                .limit(replicas)
                .mapToObj(peers::get)
                .toList();
    }

    /// Brings blocks of one group into the store, as many as there are in time.
    ///
    /// @param at first block that is missing
    /// @return the block after the last that is here now
    int fetch(BlockChain chain, int at, long timeoutNanos) {
        BlockKey key = chain.key(at);
        if (misses.getIfPresent(key) != null) {
            return at;
        }
        long start = clock.nanos();
        Flight mine = new Flight(clock);
        Flight before = flights.putIfAbsent(key, mine);
        if (before != null) {
            if (!before.ended(start + timeoutNanos)) {
                return at;
            }
            if (misses.getIfPresent(key) != null) {
                return at; // that is what it has found
            }
            flights.putIfAbsent(key, mine); // should its chain have been another one from here on
        }
        try {
            int here = local.match(chain).blocks(); // it may have come since it was missed
            return here > at ? here : ask(chain, at, timeoutNanos - (clock.nanos() - start));
        } finally {
            flights.remove(key, mine);
            mine.end();
        }
    }

    private int ask(BlockChain chain, int at, long timeoutNanos) {
        try (Arrivals.Arrival arrival = arrivals.begin(chain)) {
            return ask(arrival, chain, at, timeoutNanos);
        }
    }

    private int ask(Arrivals.Arrival arrival, BlockChain chain, int at, long timeoutNanos) {
        long start = clock.nanos();
        BlockGroup group = BlockGroup.of(chain, at, BlockGroup.end(at, chain.length()));
        int asked = 0;
        for (Peer peer : keepers(group.key())) {
            long left = timeoutNanos - (clock.nanos() - start);
            PeerCache cache =
                    left > 0 && arrival.wanted() ? peer.ready(group.chain().namespace()) : null;
            if (cache != null) {
                int end = bring(peer, cache, new Wanted(arrival, chain, group, at), left);
                if (end > at) {
                    return end;
                }
                asked += end == at ? 1 : 0;
            }
        }
        if (asked == replicas) {
            misses.put(chain.key(at), true);
        }
        return at;
    }

    private record Wanted(Arrivals.Arrival arrival, BlockChain chain, BlockGroup group, int at) {}

    /// Answers the block after the last that is here; -1 when the peer failed, or what it had could not be
    /// kept, so that it is no miss.
    private int bring(Peer peer, PeerCache cache, Wanted wanted, long timeoutNanos) {
        long start = clock.nanos();
        long failedBefore = cache.failed();
        int at = wanted.at;
        int first = wanted.group.first();
        boolean had;
        try (BlockTable table = cache.acquire(wanted.group.chain(), at - first, timeoutNanos)) {
            had = table.blocks() > 0;
            boolean more = had;
            while (more && at < first + wanted.group.chain().length()) {
                long left = Math.max(0, timeoutNanos - (clock.nanos() - start));
                more = table.await(at - wanted.at + 1, left) > at - wanted.at && keep(wanted, at, table, at - first);
                at += more ? 1 : 0;
            }
        }
        boolean late = clock.nanos() - start >= timeoutNanos;
        if (at == wanted.at && (late || cache.failed() > failedBefore)) {
            peer.failed();
            return -1;
        }
        peer.worked();
        peer.found.add((long) at - wanted.at);
        if (!had) {
            peer.missed.increment();
        }
        return had && at == wanted.at ? -1 : at;
    }

    /// Makes a block that has come one of the store's, unless it was dropped meanwhile.
    private boolean keep(Wanted wanted, int index, BlockTable from, int of) {
        return wanted.arrival.keep(() -> keep(wanted.chain, index, from, of));
    }

    private boolean keep(BlockChain chain, int index, BlockTable from, int of) {
        try (BlockWriter writer = local.put(chain, index, 0, KvCache.NO_WAIT)) {
            if (writer.outcome() != PutOutcome.RESERVED) {
                return writer.outcome() == PutOutcome.PRESENT;
            }
            ChunkedCrc sum = new ChunkedCrc();
            sum.copy(from.segment(of), 0, writer.segment());
            if (sum.value() != from.checksum(of)) {
                corrupt.increment();
                return false;
            }
            return writer.seal(sum.value()) == SealOutcome.SEALED;
        }
    }

    /// Gives the peers of a group what the store has of it.
    ///
    /// @param chain up to the last block that may be given
    /// @return whether each of them has all of it now
    boolean give(BlockChain chain) {
        int last = chain.length() - 1;
        BlockGroup whole = BlockGroup.of(chain, last, chain.length());
        boolean all = true;
        try (BlockTable table = local.acquire(chain, whole.first(), KvCache.NO_WAIT)) {
            int ready = table.readyBlocks();
            List<MemorySegment> blocks = IntStream.range(whole.first(), whole.first() + ready)
                    .mapToObj(table::segment)
                    .toList();
            for (Peer peer : keepers(whole.key())) {
                PeerCache cache =
                        blocks.isEmpty() ? null : peer.ready(whole.chain().namespace());
                all &= blocks.isEmpty() || (cache != null && give(peer, cache, whole, blocks) == ready);
            }
        }
        return all;
    }

    private static int give(Peer peer, PeerCache cache, BlockGroup group, List<MemorySegment> blocks) {
        long failedBefore = cache.failed();
        int accepted = cache.putAll(group.chain().prefix(blocks.size()), blocks).accepted();
        if (cache.failed() > failedBefore) {
            peer.failed();
        } else {
            peer.worked();
        }
        peer.given.add(accepted);
        return accepted;
    }

    /// A drop begins, here and at peers: what comes of it until it is over is not kept.
    ///
    /// @return to be run when it is over
    Runnable dropping(BlockChain chain, int from) {
        return arrivals.drop(chain, from);
    }

    /// The same of a namespace.
    Runnable dropping(Namespace namespace) {
        return arrivals.drop(namespace);
    }

    /// Has peers forget what is below a block.
    ///
    /// @throws UncheckedIOException when one of them did not answer; the others have forgotten it
    void drop(BlockChain chain, int from) {
        List<String> unreached = new ArrayList<>();
        for (int at = from; at < chain.length(); at = BlockGroup.end(at, chain.length())) {
            BlockGroup group = BlockGroup.of(chain, at, BlockGroup.end(at, chain.length()));
            int offset = at - group.first();
            for (Peer peer : keepers(group.key())) {
                drop(peer, group.chain().namespace(), cache -> cache.drop(group.chain(), offset), unreached);
            }
        }
        requireNone(unreached);
    }

    /// Has peers forget all blocks of a namespace.
    ///
    /// @throws UncheckedIOException when one of them did not answer; the others have forgotten them
    void drop(Namespace namespace) {
        List<String> unreached = new ArrayList<>();
        Namespace groups = BlockGroup.namespace(namespace);
        peers.forEach(peer -> drop(peer, groups, cache -> cache.drop(groups), unreached));
        requireNone(unreached);
    }

    private static void drop(Peer peer, Namespace groups, Consumer<PeerCache> what, List<String> unreached) {
        PeerCache cache = peer.ready(groups);
        try {
            if (cache == null) {
                unreached.add(peer.name());
            } else {
                what.accept(cache);
            }
        } catch (UncheckedIOException unanswered) {
            peer.failed();
            unreached.add(peer.name());
        }
    }

    private static void requireNone(List<String> unreached) {
        if (!unreached.isEmpty()) {
            String names = unreached.stream().distinct().collect(Collectors.joining(", "));
            throw new UncheckedIOException(
                    new IOException("not reached, and may keep what was dropped here: " + names));
        }
    }

    List<PeerStats> stats() {
        return peers.stream().map(Peer::stats).toList();
    }

    /// Blocks that came with other bytes than were sealed.
    long corruptCount() {
        return corrupt.sum();
    }

    @Override
    public void close() {
        peers.forEach(Peer::close);
    }

    @Override
    public String toString() {
        return "peers " + Arrays.toString(peers.stream().map(Peer::name).toArray());
    }
}
