package io.kvcache.transport.peer;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.identity.BlockKey;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// How much a client reads of each group, and how many servers should have a copy therefore.
///
/// Let `r` be the group's share of all bytes that this client has read lately, times the number of servers: 1
/// stands for a server's fair share. The group has `ceil(2 r)` copies, so that each serves half a fair share of
/// it, but 8 at most. Clients that read alike find about the same numbers, and a smaller number stands for some of
/// the same servers. So no client needs to know what another one reads.
///
/// **Threads.** Any.
final class GroupHeat {

    /// Fewer reads say nothing about shares: a client with few requests makes no copies.
    static final int MIN_READS = 32;

    /// A group that matters has a share of 1 / (2 servers), so there are few of them.
    private static final int MAX_GROUPS = 4096;

    static final int MAX_COPIES = 8;

    private final int minReads;
    private final DecayingSum allBytes = new DecayingSum();
    private final Cache<BlockKey, Reads> groups = Caffeine.newBuilder()
            .maximumSize(MAX_GROUPS)
            .executor(Runnable::run)
            .build();

    /// Lately, of one group.
    private record Reads(DecayingSum count, DecayingSum bytes) {}

    /// @param minReads recent reads from which on a group gets copies
    GroupHeat(int minReads) {
        this.minReads = minReads;
    }

    /// Notes that bytes of a group were read.
    void onRead(BlockKey group, long bytes, long nowNanos) {
        Reads reads = groups.get(group, _ -> new Reads(new DecayingSum(), new DecayingSum()));
        reads.count.add(1, nowNanos);
        reads.bytes.add(bytes, nowNanos);
        allBytes.add(bytes, nowNanos);
    }

    /// Returns how many servers should have a group, its owner among them.
    ///
    /// @param servers of the cluster
    int copies(BlockKey group, int servers, long nowNanos) {
        @Nullable Reads reads = groups.getIfPresent(group);
        if (reads == null || reads.count.value(nowNanos) < minReads) {
            return 1;
        }
        double all = Math.max(1, allBytes.value(nowNanos));
        double fairShares = reads.bytes.value(nowNanos) / all * servers;
        return Math.clamp((long) Math.ceil(2 * fairShares), 1, Math.min(MAX_COPIES, servers));
    }

    /// A sum of what has happened lately: it is halved every 30 seconds. All sums are halved at the same
    /// moments, so the quotient of two of them does not jump.
    ///
    /// **Threads.** Any.
    static final class DecayingSum {

        private static final long HALVING_NANOS = TimeUnit.SECONDS.toNanos(30);

        private long sum;
        private long halvings;

        synchronized void add(long amount, long nowNanos) {
            decay(nowNanos);
            sum += amount;
        }

        synchronized long value(long nowNanos) {
            decay(nowNanos);
            return sum;
        }

        private void decay(long nowNanos) {
            long now = Math.floorDiv(nowNanos, HALVING_NANOS);
            if (sum == 0) {
                halvings = now;
            } else if (now > halvings) {
                sum >>= Math.min(Long.SIZE - 1, now - halvings);
                halvings = now;
            }
        }
    }
}
