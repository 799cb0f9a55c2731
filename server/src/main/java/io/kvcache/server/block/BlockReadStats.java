package io.kvcache.server.block;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.miss.MissLog.BlockLookup;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Outcomes of reads of single blocks, by tenant, with the causes of misses.
///
/// **Threads.** Any.
public final class BlockReadStats {

    private final MissCauses missCauses;
    private volatile @Nullable MissLog missLog;
    private final ConcurrentMap<String, TenantCounters> tenants = new ConcurrentHashMap<>();

    /// @param tenants there are
    BlockReadStats(Set<String> tenants, LongSupplier nanos) {
        missCauses = new MissCauses(nanos);
        tenants.forEach(this::forTenant);
    }

    /// Counts of reads by outcome.
    ///
    /// @param absent misses of blocks that were never here, or so long ago that it is forgotten
    /// @param evicted misses of blocks whose room the store took
    /// @param quota misses of blocks that went because of the quota
    /// @param deleted misses of blocks that a client deleted, or one before them
    /// @param busy misses because as much was being sent as may be
    /// @param late misses of blocks that are on disk and did not come in time, or found no room in memory
    public record Stats(long hits, long absent, long evicted, long quota, long deleted, long busy, long late) {}

    /// Reads of one tenant.
    final class TenantCounters {

        private final LongAdder hits = new LongAdder();
        private final LongAdder absent = new LongAdder();
        private final LongAdder evicted = new LongAdder();
        private final LongAdder quota = new LongAdder();
        private final LongAdder deleted = new LongAdder();
        private final LongAdder busy = new LongAdder();
        private final LongAdder late = new LongAdder();

        void recordHit() {
            hits.increment();
        }

        void recordThrottled(BlockLookup lookup) {
            count(MissLog.Reason.BUSY);
            log(lookup, MissLog.Reason.BUSY);
        }

        void recordTimeout(BlockLookup lookup) {
            count(MissLog.Reason.LATE);
            log(lookup, MissLog.Reason.LATE);
        }

        /// A block is not here.
        void recordMiss(BlockLookup lookup) {
            count(MissLog.Reason.of(missCauses.causeOf(lookup.key())));
            MissLog told = missLog;
            if (told != null) {
                told.recordBlocks(lookup);
            }
        }

        /// A block was not found by a look-up that is in the log already: the store tells it of those of chains.
        ///
        /// @param late whether it is on disk, and did not come in time
        void countMiss(BlockKey block, boolean late) {
            count(late ? MissLog.Reason.LATE : MissLog.Reason.of(missCauses.causeOf(block)));
        }

        private void count(MissLog.Reason reason) {
            switch (reason) {
                case EVICTED, EXPIRED -> evicted.increment();
                case QUOTA -> quota.increment();
                case DELETED -> deleted.increment();
                case BUSY -> busy.increment();
                case LATE -> late.increment();
                case NEVER_SEEN, OUTDATED, COMPUTED_SOONER, OTHER_HALF -> absent.increment(); // the first alone
            }
        }

        private void log(BlockLookup lookup, MissLog.Reason reason) {
            MissLog told = missLog;
            if (told != null) {
                told.recordBlocks(lookup, reason);
            }
        }

        private Stats stats() {
            return new Stats(
                    hits.sum(), absent.sum(), evicted.sum(), quota.sum(), deleted.sum(), busy.sum(), late.sum());
        }
    }

    /// Has misses told of from now on.
    public void recordMissesTo(MissLog log) {
        missLog = log;
    }

    /// Why blocks have left.
    public MissCauses missCauses() {
        return missCauses;
    }

    TenantCounters forTenant(String tenant) {
        return tenants.computeIfAbsent(tenant, _ -> new TenantCounters());
    }

    /// A block has left.
    void recordRemoval(BlockKey key, MissCauses.Cause cause) {
        missCauses.record(key, cause);
    }

    /// By tenant.
    public Map<String, Stats> stats() {
        Map<String, Stats> all = new LinkedHashMap<>();
        tenants.forEach((tenant, tenantCounters) -> all.put(tenant, tenantCounters.stats()));
        return all;
    }
}
