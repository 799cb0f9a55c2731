package io.kvcache.tiers;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.store.HostStore;
import io.kvcache.tiers.movement.Movement;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Whether blocks that are on disk are loaded, or left there because computing them takes less
/// time, or because they would come too late.
///
/// The policy of host memory is told the same proportion ([CopyWorth]), as a block that is read
/// back in no time need not be kept there, and admission to disks by value where in a prompt
/// computing takes longer.
///
/// What a load takes is estimated from the reads of the last while and from what waits to be read.
/// As nothing is learned of a disk that is not read, one in [#TRIES] such blocks is loaded all the
/// same.
///
/// **Threads.** Any.
final class LoadOrCompute {

    private static final int TRIES = 64;

    private final HostStore store;
    private final @Nullable PrefillCost prefill;
    private final CopyWorth copyWorth = new CopyWorth();
    private final AtomicInteger refusals = new AtomicInteger();
    private final LongAdder left = new LongAdder();

    /// @param prefill null to load whatever is there
    LoadOrCompute(HostStore store, @Nullable PrefillCost prefill) {
        this.store = store;
        this.prefill = prefill;
        if (prefill != null) {
            store.tierPort().setPrefillCost(prefill);
        }
    }

    /// Blocks that were left on disk so far.
    long left() {
        return left.sum();
    }

    /// Blocks of a chain that are on disk alone, and those before them resident.
    record Span(int here, int known) {
        int length() {
            return known - here;
        }
    }

    /// How many blocks of a span to load, from its first on.
    ///
    /// @param deadlineNanos how long whoever asks will wait
    int loadable(Movement movement, BlockChain chain, Span span, long deadlineNanos) {
        PrefillCost cost = prefill;
        if (cost == null) {
            return span.length();
        }
        learn(movement, chain, span, cost);
        int loads = worthLoading(movement, chain, span, deadlineNanos);
        if (loads == 0 && refusals.incrementAndGet() % TRIES == 0) {
            return span.length();
        }
        left.add(span.length() - loads);
        return loads;
    }

    private void learn(Movement movement, BlockChain chain, Span span, PrefillCost cost) {
        long tokens = chain.namespace().blockTokens();
        double loading = movement.readNanos(
                (long) span.length() * store.require(chain.namespace()).blockBytes());
        if (loading > 0) {
            double computing = 1e9 * cost.seconds(span.here * tokens, span.known * tokens);
            store.tierPort().setReloadCostRatio(copyWorth.learn(loading, computing));
        }
    }

    /// How many blocks of a span are worth loading, from its first on, as far as is known now.
    ///
    /// @param deadlineNanos how long whoever asks will wait
    int worthLoading(Movement movement, BlockChain chain, Span span, long deadlineNanos) {
        PrefillCost cost = prefill;
        if (cost == null) {
            return span.length();
        }
        int blockBytes = store.require(chain.namespace()).blockBytes();
        long tokens = chain.namespace().blockTokens();
        int loads = span.length();
        double loading = movement.readNanos((long) loads * blockBytes);
        while (loads > 0 && loading > deadlineNanos) {
            loads /= 2;
            loading = movement.readNanos((long) loads * blockBytes);
        }
        double computing = 1e9 * cost.seconds(span.here * tokens, (span.here + loads) * tokens);
        return loading >= computing ? 0 : loads;
    }
}
