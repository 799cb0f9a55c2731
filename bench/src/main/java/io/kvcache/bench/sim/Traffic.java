package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.Checks.require;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// What callers do to the store, at random: by its public face alone.
final class Traffic {

    static final long LONGEST_PIN_NANOS = 2 * SimClock.SECOND;

    private static final int MOST_WRITERS = 6;

    private final SimClock clock;
    private final Corpus corpus;
    private final SplittableRandom random;
    private final RareCounts rare;
    private final List<Filled> writers = new ArrayList<>();

    /// A block that is written, and not sealed yet.
    private record Filled(BlockChain chain, int index, BlockWriter writer) {}

    Traffic(SimClock clock, Corpus corpus, SplittableRandom random, RareCounts rare) {
        this.clock = clock;
        this.corpus = corpus;
        this.random = random;
        this.rare = rare;
    }

    private long someTime() {
        return switch (random.nextInt(4)) {
            case 0 -> KvCache.NO_WAIT;
            case 1 -> random.nextLong(5 * SimClock.MILLI);
            case 2 -> random.nextLong(100 * SimClock.MILLI);
            default -> random.nextLong(3 * SimClock.SECOND);
        };
    }

    /// What is missing of a prompt is put, as an engine does; the last block sometimes stays with its
    /// writer.
    void put(KvCache cache) {
        BlockChain chain = corpus.chain();
        int from = random.nextInt(8) == 0 ? 0 : cache.match(chain).blocks();
        for (int index = from; index < chain.length(); index++) {
            BlockWriter writer = cache.put(chain, index, 0, random.nextInt(4) == 0 ? someTime() : KvCache.NO_WAIT);
            PutOutcome outcome = writer.outcome();
            rare.count("put " + outcome);
            if (outcome == PutOutcome.RESERVED) {
                Corpus.content(chain.key(index)).fill(writer.segment());
                Filled filled = new Filled(chain, index, writer);
                if (random.nextInt(12) > 0) {
                    end(filled);
                } else {
                    writers.add(filled);
                }
                if (writers.size() > MOST_WRITERS) {
                    endLate(writers.removeFirst());
                }
            } else if (!outcome.allowsNextBlock()) {
                return;
            }
        }
    }

    private void end(Filled filled) {
        if (random.nextInt(30) == 0) {
            filled.writer.close();
            rare.count("put abandoned");
            return;
        }
        SealOutcome sealed = filled.writer.seal();
        rare.count("sealed " + sealed);
    }

    /// Nobody has touched its room meanwhile.
    private void endLate(Filled filled) {
        Corpus.content(filled.chain.key(filled.index)).requireEqual(filled.writer.segment());
        end(filled);
    }

    void endWriter() {
        if (!writers.isEmpty()) {
            endLate(writers.remove(random.nextInt(writers.size())));
        }
    }

    void endWriters() {
        while (!writers.isEmpty()) {
            endLate(writers.removeLast());
        }
    }

    /// The store is no more.
    void forget() {
        writers.clear();
    }

    void acquire(KvCache cache, OpenTables tables) {
        BlockChain chain = corpus.chain();
        Match match = cache.match(chain);
        require(match.blocks() <= chain.length(), () -> match + " of a chain of " + chain.length());
        int from = random.nextInt(3) == 0 ? random.nextInt(chain.length() + 1) : 0;
        long timeout = someTime();
        tables.add(chain, cache.acquire(chain, from, timeout), timeout);
    }

    void hint(KvCache cache) {
        BlockChain chain = corpus.chain();
        Hint hint = switch (random.nextInt(8)) {
            case 0, 1 -> new Hint.Pin(chain, random.nextLong(LONGEST_PIN_NANOS));
            case 2 -> new Hint.Forget(chain, random.nextInt(chain.length()));
            case 3 -> new Hint.Label(chain, random.nextInt(chain.length()), label());
            case 4 -> new Hint.Weigh(chain, 0, List.of(random.nextInt(2) == 0 ? 1f : random.nextFloat()));
            case 5 -> new Hint.Expire(chain, random.nextInt(chain.length()), random.nextLong(8 * SimClock.SECOND));
            default -> new Hint.Expect(chain, 0);
        };
        rare.count(hint.getClass().getSimpleName() + (cache.hint(hint) ? " taken" : " not taken"));
    }

    private RequestLabel label() {
        RequestKind kind = RequestKind.of(random.nextInt(4));
        return new RequestLabel(kind, random.nextInt(4), random.nextInt(4), random.nextInt(4) == 0);
    }

    void objects(KvCache cache, ObjectModel model) {
        switch (random.nextInt(9)) {
            case 0, 1, 2, 3 -> model.put(cache, someTime());
            case 4 -> model.drop(cache);
            default -> model.get(cache, someTime());
        }
    }

    void drop(KvCache cache, Promises promises) {
        BlockChain chain = corpus.chain();
        int from = random.nextInt(chain.length());
        promises.dropped(chain, from);
        rare.countIf("chain dropped", cache.drop(chain, from) > 0);
    }

    void dropAll(KvCache cache, Promises promises) {
        Namespace space = corpus.space();
        promises.dropped(space);
        rare.countIf("namespace dropped", cache.drop(space) > 0);
    }

    void letTimePass() {
        clock.pause(random.nextLong(8 * SimClock.SECOND));
    }
}
