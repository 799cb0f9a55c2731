package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.Checks.require;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// The tables that the run holds: while one is open its blocks keep their bytes, it never gets shorter
/// than what was ready, and it ends when its time is over.
final class OpenTables {

    private static final int MOST = 12;

    /// What of a block is looked at while its table is open; all of it when it closes.
    private static final int GLANCE_BYTES = 512;

    private final SimClock clock;
    private final SplittableRandom random;
    private final RareCounts rare;
    private final List<Held> held = new ArrayList<>();

    private static final class Held {
        final BlockChain chain;
        final BlockTable table;
        final long endsAt;
        int ready;

        Held(BlockChain chain, BlockTable table, long endsAt) {
            this.chain = chain;
            this.table = table;
            this.endsAt = endsAt;
        }
    }

    OpenTables(SimClock clock, SplittableRandom random, RareCounts rare) {
        this.clock = clock;
        this.random = random;
        this.rare = rare;
    }

    void add(BlockChain chain, BlockTable table, long timeoutNanos) {
        held.add(new Held(chain, table, clock.nanos() + timeoutNanos));
        if (held.size() > MOST) {
            close(held.removeFirst());
        }
    }

    /// A glance at each.
    void check() {
        held.forEach(each -> check(each, GLANCE_BYTES));
    }

    private void check(Held each, int most) {
        BlockTable table = each.table;
        int ready = table.readyBlocks();
        require(ready >= each.ready, () -> "a table of " + each.ready + " blocks has only " + ready);
        rare.countIf("block arrived in a table", each.ready > 0 && ready > each.ready);
        each.ready = ready;
        boolean over = clock.nanos() > each.endsAt;
        require(
                !over || table.endBlock() == table.firstBlock() + table.readyBlocks(),
                () -> "a table's time is over and it goes on to block " + table.endBlock());
        for (int i = table.firstBlock(); i < table.firstBlock() + ready; i++) {
            MemorySegment block = table.segment(i);
            long length = Math.min(block.byteSize(), most);
            Corpus.content(each.chain.key(i)).requireEqual(block.asSlice(0, length));
            long tail = block.byteSize() - length;
            Corpus.content(each.chain.key(i)).requireEqual(tail, block.asSlice(tail));
        }
    }

    void closeOne() {
        if (!held.isEmpty()) {
            close(held.remove(random.nextInt(held.size())));
        }
    }

    private void close(Held each) {
        check(each, Integer.MAX_VALUE);
        rare.countIf("table ends before its chain", each.table.endBlock() < each.chain.length());
        rare.countIf("table closed while blocks come", each.table.endBlock() > each.table.firstBlock() + each.ready);
        each.table.close();
    }

    void closeAll() {
        while (!held.isEmpty()) {
            close(held.removeLast());
        }
    }

    /// The store is no more.
    void forget() {
        held.clear();
    }
}
