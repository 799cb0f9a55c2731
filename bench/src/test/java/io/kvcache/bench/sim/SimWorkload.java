package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.SimAssertions.require;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PartGroup;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// Random calls to the store, through its public API only.
final class SimWorkload {

    static final long MAX_PIN_NANOS = 2 * SimClock.SECOND;

    private static final int MAX_WRITERS = 6;

    private final SimClock clock;
    private final SimKeySpace simKeySpace;
    private final SplittableRandom random;
    private final CoverageCounters coverage;
    private final List<FilledBlock> writers = new ArrayList<>();

    /// A block that is written, and not sealed yet.
    private record FilledBlock(BlockChain chain, int index, BlockWriter writer) {}

    SimWorkload(SimClock clock, SimKeySpace simKeySpace, SplittableRandom random, CoverageCounters rare) {
        this.clock = clock;
        this.simKeySpace = simKeySpace;
        this.random = random;
        this.coverage = rare;
    }

    private Duration randomTimeout() {
        return switch (random.nextInt(4)) {
            case 0 -> LocalKvCache.NO_WAIT;
            case 1 -> Duration.ofNanos(random.nextLong(5 * SimClock.MILLI));
            case 2 -> Duration.ofNanos(random.nextLong(100 * SimClock.MILLI));
            default -> Duration.ofNanos(random.nextLong(3 * SimClock.SECOND));
        };
    }

    /// Puts the missing blocks of a prompt, as an engine does. The last block sometimes stays with its writer.
    void putPrompt(LocalKvCache cache) {
        BlockChain chain = simKeySpace.randomChain();
        int from = random.nextInt(8) == 0 ? 0 : cache.match(chain).fullBlocks();
        for (int index = from; index < chain.length(); index++) {
            BlockWriter writer =
                    cache.put(chain, index, 0, random.nextInt(4) == 0 ? randomTimeout() : LocalKvCache.NO_WAIT);
            PutOutcome outcome = writer.outcome();
            coverage.count("put " + outcome);
            if (outcome == PutOutcome.RESERVED) {
                SimKeySpace.content(chain.key(index)).fill(writer.segment());
                FilledBlock filledBlock = new FilledBlock(chain, index, writer);
                if (random.nextInt(12) > 0) {
                    endWrite(filledBlock);
                } else {
                    writers.add(filledBlock);
                }
                if (writers.size() > MAX_WRITERS) {
                    endWriteLate(writers.removeFirst());
                }
            } else if (!outcome.allowsNextBlock()) {
                return;
            }
            putEntries(cache, chain, index);
        }
    }

    /// Puts some of the windows and states behind a block.
    private void putEntries(LocalKvCache cache, BlockChain chain, int index) {
        for (PartGroup group : chain.namespace().groups()) {
            if (!group.isBehind(index) || random.nextInt(4) == 0) {
                continue;
            }
            int part = chain.namespace().parts().indexOf(group.parts().getFirst());
            BlockWriter writer = cache.put(chain, index, part, LocalKvCache.NO_WAIT);
            coverage.count("put entry " + writer.outcome());
            if (writer.outcome() == PutOutcome.RESERVED) {
                BlockChain entry = chain.entry(group, group.entryBehind(index));
                SimKeySpace.content(entry.key(0)).fill(writer.segment());
                FilledBlock filled = new FilledBlock(entry, 0, writer);
                if (random.nextInt(12) > 0) {
                    endWrite(filled);
                } else {
                    writers.add(filled);
                }
            }
        }
    }

    private void endWrite(FilledBlock filledBlock) {
        if (random.nextInt(30) == 0) {
            filledBlock.writer.close();
            coverage.count("put abandoned");
            return;
        }
        SealOutcome sealed = filledBlock.writer.seal();
        coverage.count("sealed " + sealed);
    }

    /// Seals or closes a writer that stayed open for a while, and checks first that its bytes are unchanged.
    private void endWriteLate(FilledBlock filledBlock) {
        SimKeySpace.content(filledBlock.chain.key(filledBlock.index)).requireEqual(filledBlock.writer.segment());
        endWrite(filledBlock);
    }

    void endWriter() {
        if (!writers.isEmpty()) {
            endWriteLate(writers.remove(random.nextInt(writers.size())));
        }
    }

    void endWriters() {
        while (!writers.isEmpty()) {
            endWriteLate(writers.removeLast());
        }
    }

    /// Forgets all writers without closing them, as their store was closed or has crashed.
    void discardAll() {
        writers.clear();
    }

    void acquirePrompt(LocalKvCache cache, OpenTables tables) {
        BlockChain chain = simKeySpace.randomChain();
        Match match = cache.match(chain);
        require(match.blocks() <= chain.length(), () -> match + " of a chain of " + chain.length());
        int from = random.nextInt(3) == 0 ? random.nextInt(chain.length() + 1) : 0;
        Duration timeout = randomTimeout();
        BlockTable table = random.nextBoolean()
                ? cache.acquireByLayers(chain, from, timeout, 1 + random.nextInt(2))
                : cache.acquire(chain, from, timeout);
        tables.add(chain, table, timeout.toNanos());
    }

    void giveHint(LocalKvCache cache) {
        BlockChain chain = simKeySpace.randomChain();
        Hint hint = switch (random.nextInt(8)) {
            case 0, 1 -> new Hint.Pin(chain, Duration.ofNanos(random.nextLong(MAX_PIN_NANOS)));
            case 2 -> new Hint.Forget(chain, random.nextInt(chain.length()));
            case 3 -> new Hint.Label(chain, random.nextInt(chain.length()), addLabels());
            case 4 -> new Hint.Weigh(chain, 0, List.of(random.nextInt(2) == 0 ? 1f : random.nextFloat()));
            case 5 ->
                new Hint.Expire(
                        chain, random.nextInt(chain.length()), Duration.ofNanos(random.nextLong(8 * SimClock.SECOND)));
            default -> new Hint.Expect(chain, Duration.ZERO);
        };
        coverage.count(hint.getClass().getSimpleName() + (cache.hint(hint) ? " taken" : " not taken"));
    }

    private RequestLabel addLabels() {
        RequestKind kind = RequestKind.of(random.nextInt(4));
        return new RequestLabel(kind, random.nextInt(4), random.nextInt(4), random.nextInt(4) == 0);
    }

    void useObjects(LocalKvCache cache, ObjectOracle model) {
        switch (random.nextInt(9)) {
            case 0, 1, 2, 3 -> model.put(cache, randomTimeout());
            case 4 -> model.drop(cache);
            default -> model.get(cache, randomTimeout());
        }
    }

    void drop(LocalKvCache cache, DurabilityOracle durabilityOracle) {
        BlockChain chain = simKeySpace.randomChain();
        int from = random.nextInt(chain.length());
        durabilityOracle.onDropped(chain, from);
        coverage.countIf("chain dropped", cache.drop(chain, from) > 0);
    }

    void dropAll(LocalKvCache cache, DurabilityOracle durabilityOracle) {
        Namespace space = simKeySpace.randomNamespace();
        durabilityOracle.onDropped(space);
        coverage.countIf("namespace dropped", cache.drop(space) > 0);
    }

    void advanceTime() {
        clock.sleep(random.nextLong(8 * SimClock.SECOND));
    }
}
