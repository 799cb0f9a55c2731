package io.kvcache.transport.peer;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.Hint;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.time.Backoff;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/// The copies of groups, as a client uses them: it chooses the server to read a group from, and has copies made.
///
/// No server knows where copies are. The servers that may have one follow from the group's key and from its
/// [heat][GroupHeat]. One that turns out to lack what the owner has is told to expect the group, and fetches it
/// from the owner in the background. Meanwhile it is not asked for the group, for 100 ms the first time and then
/// twice as long each time.
///
/// **Threads.** Any.
final class GroupCopies {

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final int MAX_PAUSES = 8192;

    /// How often a second copy of the same blocks is asked for, and after a refusal.
    private static final long SECOND_COPY_NANOS = TimeUnit.MINUTES.toNanos(10);

    private static final long REFUSED_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final int MAX_SECOND_COPIES = 1 << 16;

    /// Requests for copies under way; what is more is not asked for.
    private static final int MAX_REQUESTS = 64;

    private final GroupHeat heat;
    private final IntUnaryOperator random;
    private final Executor executor;
    private final PeerClock clock;
    private final Cache<Place, Pause> pauses = Caffeine.newBuilder()
            .maximumSize(MAX_PAUSES)
            .executor(Runnable::run)
            .build();

    /// When a second copy is asked for again, by the last block of what was read: chains that share the group's
    /// first block need not share more.
    private final Cache<BlockKey, Long> secondCopies = Caffeine.newBuilder()
            .maximumSize(MAX_SECOND_COPIES)
            .executor(Runnable::run)
            .build();

    private final AtomicInteger requests = new AtomicInteger();
    private final LongAdder reads = new LongAdder();
    private final LongAdder missing = new LongAdder();
    private final LongAdder requested = new LongAdder();

    /// A group at a server.
    private record Place(BlockKey group, String server) {}

    /// When a server is asked for a group again.
    private static final class Pause {

        private final Backoff backoff = new Backoff(FIRST_PAUSE_NANOS, MAX_PAUSE_NANOS);
        private long untilNanos;

        synchronized void extend(long nowNanos) {
            untilNanos = nowNanos + backoff.nextNanos();
        }

        synchronized boolean isOver(long nowNanos) {
            return nowNanos - untilNanos >= 0;
        }
    }

    /// Replacements for tests.
    ///
    /// @param minReads recent reads from which on a group gets copies
    /// @param random returns a number from 0 on that is less than a bound
    record Options(int minReads, IntUnaryOperator random) {
        static final Options DEFAULTS = new Options(
                GroupHeat.MIN_READS, bound -> ThreadLocalRandom.current().nextInt(bound));
    }

    /// @param executor runs requests for copies
    GroupCopies(Options options, Executor executor, PeerClock clock) {
        heat = new GroupHeat(options.minReads);
        random = options.random;
        this.executor = executor;
        this.clock = clock;
    }

    /// Chooses the server to read a group from. That is one whose memory this process maps, else one of the
    /// client's zone if that is known, else the less loaded of two at random.
    ///
    /// @param owner the group's owner, or the server that takes its place
    /// @return null for the owner
    ClusterRoute.@Nullable Reached choose(ClusterRoute route, BlockGroup group, ClusterRoute.Reached owner) {
        if (route.view().replicas() == ReplicaPolicy.NONE) {
            return null;
        }
        long now = clock.nanos();
        int copies = heat.copies(group.key(), route.view().serving().size(), now);
        if (copies == 1) {
            return null;
        }
        List<ClusterRoute.Reached> candidates = route
                .copies(group.key(), copies, group.chain().namespace())
                .stream()
                .filter(each -> each.peer() == owner.peer() || isAsked(group.key(), each, now))
                .toList();
        ClusterRoute.Reached chosen = candidates.isEmpty() ? owner : choose(route.nearest(candidates), now);
        return chosen.peer() == owner.peer() ? null : chosen;
    }

    private ClusterRoute.Reached choose(List<ClusterRoute.Reached> candidates, long now) {
        int count = candidates.size();
        int first = random.applyAsInt(count);
        ClusterRoute.Reached one = candidates.get(first);
        if (count == 1) {
            return one;
        }
        ClusterRoute.Reached other = candidates.get((first + 1 + random.applyAsInt(count - 1)) % count);
        return other.peer().readLoad.isBelow(one.peer().readLoad, now) ? other : one;
    }

    private boolean isAsked(BlockKey group, ClusterRoute.Reached server, long now) {
        Pause pause = pauses.getIfPresent(new Place(group, server.peer().name()));
        return pause == null || pause.isOver(now);
    }

    /// A copy had all that was wanted of a group, or all that there is.
    void onComplete(BlockGroup group, ClusterRoute.Reached copy) {
        pauses.invalidate(new Place(group.key(), copy.peer().name()));
    }

    /// A copy lacked blocks that the owner has.
    ///
    /// @param wanted the group's chain up to the last block that was wanted
    void onMissing(BlockGroup group, BlockChain wanted, ClusterRoute.Reached copy) {
        missing.increment();
        long now = clock.nanos();
        pauses.get(new Place(group.key(), copy.peer().name()), _ -> new Pause()).extend(now);
        request(wanted, copy, () -> {});
    }

    /// Blocks of a group were read.
    ///
    /// @param read the group's chain up to the last block that came
    /// @param bytes that came
    /// @param isCopy whether a copy served them
    void onRead(ClusterRoute route, BlockGroup group, BlockChain read, long bytes, boolean isCopy) {
        long now = clock.nanos();
        heat.onRead(group.key(), bytes, now);
        if (isCopy) {
            reads.increment();
        }
        if (route.view().replicas() == ReplicaPolicy.REUSED) {
            requestSecondCopy(route, group, read, now);
        }
    }

    private void requestSecondCopy(ClusterRoute route, BlockGroup group, BlockChain read, long now) {
        BlockKey last = read.key(read.length() - 1);
        Long again = secondCopies.getIfPresent(last);
        if (again == null || now - again >= 0) {
            ClusterRoute.Reached second = route.second(group.key(), read.namespace());
            if (second != null) {
                secondCopies.put(last, now + SECOND_COPY_NANOS);
                request(read, second, () -> secondCopies.put(last, now + REFUSED_NANOS));
            }
        }
    }

    /// Has a server fetch what it lacks of a group. Does not wait for it.
    ///
    /// @param refused is run when it will not
    private void request(BlockChain group, ClusterRoute.Reached server, Runnable refused) {
        if (requests.incrementAndGet() > MAX_REQUESTS) {
            requests.decrementAndGet();
            refused.run();
            return;
        }
        requested.increment();
        try {
            executor.execute(() -> expect(group, server, refused));
        } catch (RejectedExecutionException closing) {
            requests.decrementAndGet();
        }
    }

    private void expect(BlockChain group, ClusterRoute.Reached server, Runnable refused) {
        try {
            if (!ClusterBlocks.call(server, cache -> cache.hint(new Hint.Expect(group, Duration.ZERO)))) {
                refused.run();
            }
        } finally {
            requests.decrementAndGet();
        }
    }

    ClusteredKvCache.CopyStats stats() {
        return new ClusteredKvCache.CopyStats(reads.sum(), missing.sum(), requested.sum());
    }
}
