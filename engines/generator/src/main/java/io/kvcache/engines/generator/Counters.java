package io.kvcache.engines.generator;

import java.util.concurrent.atomic.LongAdder;

/// What a generator counts.
///
/// **Threads.** Any.
final class Counters {

    final Kind hits = new Kind();
    final Kind misses = new Kind();
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
    static final class Kind {
        final LongAdder requests = new LongAdder();
        final LongAdder firstTokenNanos = new LongAdder();

        GeneratorStats.Requests read() {
            return new GeneratorStats.Requests(requests.sum(), firstTokenNanos.sum());
        }
    }

    void add(Generation made) {
        Generation.Time time = made.time();
        Kind kind = made.cachedTokens() > 0 && !made.verified() ? hits : misses;
        kind.requests.increment();
        kind.firstTokenNanos.add(time.firstTokenNanos());
        promptTokens.add(made.promptTokens());
        savedTokens.add(made.verified() ? 0 : made.cachedTokens());
        generatedTokens.add(made.tokens().length);
        lookupNanos.add(time.lookupNanos());
        importNanos.add(time.importNanos());
        prefillNanos.add(time.prefillNanos());
    }

    GeneratorStats read() {
        return new GeneratorStats(
                hits.read(),
                misses.read(),
                new GeneratorStats.Tokens(promptTokens.sum(), savedTokens.sum(), generatedTokens.sum()),
                new GeneratorStats.Nanos(lookupNanos.sum(), importNanos.sum(), prefillNanos.sum(), storeNanos.sum()),
                new GeneratorStats.Stores(
                        storedBlocks.sum(), refusedBlocks.sum(), skippedStores.sum(), failedStores.sum()),
                new GeneratorStats.Verified(verified.sum(), mismatches.sum()));
    }
}
