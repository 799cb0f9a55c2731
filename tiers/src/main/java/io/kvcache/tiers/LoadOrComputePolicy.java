package io.kvcache.tiers;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.store.HostStore;
import io.kvcache.tiers.movement.TierScheduler;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Decides whether blocks that are on disk are loaded. They are left there if computing them takes less time, or
/// if they would come too late.
///
/// The policy of host memory gets the same ratio ([LoadToRecomputeRatio]), because a block that is read back in no
/// time need not be kept there. Admission to disks by value learns where in a prompt computing takes longer.
///
/// The time of a load is estimated from recent reads and from the queue of reads. A disk without reads gives no
/// estimate, so one in [#PROBE_INTERVAL] such blocks is loaded all the same.
///
/// **Threads.** Any.
final class LoadOrComputePolicy {

    private static final int PROBE_INTERVAL = 64;

    private final HostStore store;
    private final @Nullable PrefillCost prefill;
    private final LoadToRecomputeRatio loadToRecomputeRatio = new LoadToRecomputeRatio();
    private final AtomicInteger refusals = new AtomicInteger();
    private final LongAdder blocksLeftOnDisk = new LongAdder();

    /// @param prefill null to load whatever is there
    LoadOrComputePolicy(HostStore store, @Nullable PrefillCost prefill) {
        this.store = store;
        this.prefill = prefill;
        if (prefill != null) {
            store.tierPort().setPrefillCost(prefill);
        }
    }

    /// Blocks that were left on disk so far.
    long blocksLeftOnDisk() {
        return blocksLeftOnDisk.sum();
    }

    /// Blocks of a chain that are on disk alone, and those before them resident.
    record DiskRange(int residentBlocks, int knownBlocks) {
        int length() {
            return knownBlocks - residentBlocks;
        }
    }

    /// How many blocks of a span to load, from its first on.
    ///
    /// @param deadlineNanos how long the caller will wait
    int loadableBlocks(TierScheduler tierScheduler, BlockChain chain, DiskRange diskRange, long deadlineNanos) {
        PrefillCost cost = prefill;
        if (cost == null) {
            return diskRange.length();
        }
        updateCost(tierScheduler, chain, diskRange, cost);
        int loads = blocksWorthLoading(tierScheduler, chain, diskRange, deadlineNanos);
        if (loads == 0 && refusals.incrementAndGet() % PROBE_INTERVAL == 0) {
            return diskRange.length();
        }
        blocksLeftOnDisk.add(diskRange.length() - loads);
        return loads;
    }

    private void updateCost(TierScheduler tierScheduler, BlockChain chain, DiskRange diskRange, PrefillCost cost) {
        long tokens = chain.namespace().blockTokens();
        double loading = tierScheduler.estimateReadNanos(
                (long) diskRange.length() * store.require(chain.namespace()).blockBytes());
        if (loading > 0) {
            double computing = 1e9 * cost.seconds(diskRange.residentBlocks * tokens, diskRange.knownBlocks * tokens);
            store.tierPort().setReloadCostRatio(loadToRecomputeRatio.record(loading, computing));
        }
    }

    /// How many blocks of a span are worth loading, from its first on, as far as is known now.
    ///
    /// @param deadlineNanos how long the caller will wait
    int blocksWorthLoading(TierScheduler tierScheduler, BlockChain chain, DiskRange diskRange, long deadlineNanos) {
        PrefillCost cost = prefill;
        if (cost == null) {
            return diskRange.length();
        }
        int blockBytes = store.require(chain.namespace()).blockBytes();
        long tokens = chain.namespace().blockTokens();
        int loads = diskRange.length();
        double loading = tierScheduler.estimateReadNanos((long) loads * blockBytes);
        while (loads > 0 && loading > deadlineNanos) {
            loads /= 2;
            loading = tierScheduler.estimateReadNanos((long) loads * blockBytes);
        }
        double computing =
                1e9 * cost.seconds(diskRange.residentBlocks * tokens, (diskRange.residentBlocks + loads) * tokens);
        return loading >= computing ? 0 : loads;
    }

    /// Time to read blocks from disk as a share of the time to compute them, over the last requests.
    ///
    /// The policy of host memory weighs every block that has a copy by it, so one request that came while the disk
    /// was busy must not move it far. Times are added up before they are divided. Requests count by the blocks
    /// they load, and older ones for less and less.
    ///
    /// **Threads.** Any.
    static final class LoadToRecomputeRatio {

        /// A copy saves nothing less, however fast the disk: it may be gone first.
        private static final double MIN_RATIO = 0.05;

        /// Weight that earlier requests keep at each new one: the last 32 count for two thirds.
        private static final double DECAY = 1 - 1.0 / 32;

        private double loadNanosSum;
        private double computeNanosSum;

        /// A request found blocks on disk.
        ///
        /// @param loadNanos that reading them takes, 0 and up
        /// @param computeNanos that computing them takes, above 0
        /// @return the share by now, from a twentieth to 1
        synchronized double record(double loadNanos, double computeNanos) {
            loadNanosSum = DECAY * loadNanosSum + loadNanos;
            computeNanosSum = DECAY * computeNanosSum + computeNanos;
            return Math.clamp(loadNanosSum / computeNanosSum, MIN_RATIO, 1);
        }
    }
}
