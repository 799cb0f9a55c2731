package io.kvcache.server.block;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.Departed;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.LongAdder;

/// What became of reads of single blocks, by tenant, and why blocks are not here.
///
/// **Threads.** Any.
public final class BlockReads {

    private final Departed departed = new Departed();
    private final ConcurrentMap<String, Counts> tenants = new ConcurrentHashMap<>();

    /// @param tenants there are
    BlockReads(Set<String> tenants) {
        tenants.forEach(this::of);
    }

    /// What became of reads.
    ///
    /// @param absent misses of blocks that were never here, or so long ago that it is forgotten
    /// @param evicted misses of blocks whose room the store took
    /// @param quota misses of blocks that went because of the quota
    /// @param deleted misses of blocks that somebody deleted, or one before them
    /// @param busy misses because as much was being sent as may be
    /// @param late misses of blocks that are on disk and did not come in time, or found no room in memory
    public record Stats(long hits, long absent, long evicted, long quota, long deleted, long busy, long late) {}

    /// Reads of one tenant.
    final class Counts {

        private final LongAdder hits = new LongAdder();
        private final LongAdder absent = new LongAdder();
        private final LongAdder evicted = new LongAdder();
        private final LongAdder quota = new LongAdder();
        private final LongAdder deleted = new LongAdder();
        private final LongAdder busy = new LongAdder();
        private final LongAdder late = new LongAdder();

        void found() {
            hits.increment();
        }

        void busy() {
            busy.increment();
        }

        void late() {
            late.increment();
        }

        /// A block is not here.
        void missed(BlockKey key) {
            switch (departed.why(key)) {
                case NEVER_SEEN -> absent.increment();
                case EVICTED, EXPIRED -> evicted.increment();
                case QUOTA -> quota.increment();
                case DELETED -> deleted.increment();
            }
        }

        private Stats stats() {
            return new Stats(
                    hits.sum(), absent.sum(), evicted.sum(), quota.sum(), deleted.sum(), busy.sum(), late.sum());
        }
    }

    Counts of(String tenant) {
        return tenants.computeIfAbsent(tenant, _ -> new Counts());
    }

    /// A block has left.
    void left(BlockKey key, Departed.Cause cause) {
        departed.note(key, cause);
    }

    /// By tenant.
    public Map<String, Stats> stats() {
        Map<String, Stats> all = new LinkedHashMap<>();
        tenants.forEach((tenant, counts) -> all.put(tenant, counts.stats()));
        return all;
    }
}
