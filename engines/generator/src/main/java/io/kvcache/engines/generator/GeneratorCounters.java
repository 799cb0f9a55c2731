package io.kvcache.engines.generator;

import java.util.concurrent.atomic.LongAdder;

/// What a generator counts.
///
/// **Threads.** Any.
final class GeneratorCounters {

    final RequestCounters hits = new RequestCounters();
    final RequestCounters misses = new RequestCounters();
    final LongAdder promptTokens = new LongAdder();
    final LongAdder savedTokens = new LongAdder();
    final LongAdder generatedTokens = new LongAdder();
    final LongAdder lookupNanos = new LongAdder();
    final LongAdder importNanos = new LongAdder();
    final LongAdder prefillNanos = new LongAdder();
    final LongAdder verified = new LongAdder();
    final LongAdder mismatches = new LongAdder();
    final LongAdder storedBlocks = new LongAdder();
    final LongAdder refusedBlocks = new LongAdder();
    final LongAdder skippedStores = new LongAdder();
    final LongAdder failedStores = new LongAdder();
    final LongAdder storeNanos = new LongAdder();

    /// Requests of one kind.
    static final class RequestCounters {
        final LongAdder requests = new LongAdder();
        final LongAdder firstTokenNanos = new LongAdder();

        GeneratorStats.Requests snapshot() {
            return new GeneratorStats.Requests(requests.sum(), firstTokenNanos.sum());
        }
    }

    void add(Generation made) {
        Generation.Timings timings = made.timings();
        RequestCounters requestCounters = made.cachedTokens() > 0 && !made.verified() ? hits : misses;
        requestCounters.requests.increment();
        requestCounters.firstTokenNanos.add(timings.firstTokenNanos());
        promptTokens.add(made.promptTokens());
        savedTokens.add(made.verified() ? 0 : made.cachedTokens());
        generatedTokens.add(made.tokens().length);
        lookupNanos.add(timings.lookupNanos());
        importNanos.add(timings.importNanos());
        prefillNanos.add(timings.prefillNanos());
    }

    GeneratorStats snapshot() {
        return new GeneratorStats(
                hits.snapshot(),
                misses.snapshot(),
                new GeneratorStats.Tokens(promptTokens.sum(), savedTokens.sum(), generatedTokens.sum()),
                new GeneratorStats.Nanos(lookupNanos.sum(), importNanos.sum(), prefillNanos.sum(), storeNanos.sum()),
                new GeneratorStats.Stores(
                        storedBlocks.sum(), refusedBlocks.sum(), skippedStores.sum(), failedStores.sum()),
                new GeneratorStats.Verified(verified.sum(), mismatches.sum()));
    }
}
