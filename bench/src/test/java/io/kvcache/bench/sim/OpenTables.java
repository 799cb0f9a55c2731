package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.SimAssertions.require;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.PartGroup;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// The tables that the run holds: while one is open its blocks keep their bytes, it never gets shorter
/// than what was ready, and it ends when its time is over.
final class OpenTables {

    private static final int MAX_TABLES = 12;

    /// Bytes of a block that are checked while its table is open. Closing checks all.
    private static final int PROBE_BYTES = 512;

    private final SimClock clock;
    private final SplittableRandom random;
    private final CoverageCounters coverage;
    private final List<HeldTable> held = new ArrayList<>();

    private static final class HeldTable {
        final BlockChain chain;
        final BlockTable table;
        final long endsAt;
        final Map<Integer, MemorySegment> parts = new HashMap<>();
        int ready;
        int layers;

        HeldTable(BlockChain chain, BlockTable table, long endsAt) {
            this.chain = chain;
            this.table = table;
            this.endsAt = endsAt;
        }
    }

    OpenTables(SimClock clock, SplittableRandom random, CoverageCounters rare) {
        this.clock = clock;
        this.random = random;
        this.coverage = rare;
    }

    void add(BlockChain chain, BlockTable table, long timeoutNanos) {
        held.add(new HeldTable(chain, table, clock.nanos() + timeoutNanos));
        if (held.size() > MAX_TABLES) {
            close(held.removeFirst());
        }
    }

    /// A glance at each.
    void checkAll() {
        held.forEach(each -> checkAll(each, PROBE_BYTES));
    }

    private void checkAll(HeldTable each, int most) {
        BlockTable table = each.table;
        int ready = table.readyBlocks();
        require(ready >= each.ready, () -> "a table of " + each.ready + " blocks has only " + ready);
        coverage.countIf("block arrived in a table", each.ready > 0 && ready > each.ready);
        each.ready = ready;
        boolean over = clock.nanos() > each.endsAt;
        require(
                !over || table.endBlock() == table.readyEnd(),
                () -> "a table's time is over and it goes on to block " + table.endBlock());
        checkLayers(each);
        for (int i = table.firstBlock(); i < table.firstBlock() + ready; i++) {
            MemorySegment block = table.segment(i);
            long length = Math.min(block.byteSize(), most);
            SimKeySpace.content(each.chain.key(i)).requireEqual(block.asSlice(0, length));
            long tail = block.byteSize() - length;
            SimKeySpace.content(each.chain.key(i)).requireEqual(tail, block.asSlice(tail));
        }
        if (ready > 0) {
            checkEntries(each.chain, table, table.firstBlock() + ready);
        }
    }

    /// Never a block without its window and its state.
    private void checkEntries(BlockChain chain, BlockTable table, int end) {
        for (PartGroup group : chain.namespace().groups()) {
            BlockTable entries =
                    table.part(chain.namespace().parts().indexOf(group.parts().getFirst()));
            require(
                    end % group.every() == 0
                            && entries.firstBlock() == group.firstNeeded(end)
                            && entries.readyEnd() == group.entries(end),
                    () -> "a table of " + end + " blocks has entries " + entries.firstBlock() + " to "
                            + entries.readyEnd() + " of " + group.kind());
            for (int entry = entries.firstBlock(); entry < entries.readyEnd(); entry++) {
                SimKeySpace.content(chain.entry(group, entry).key(0)).requireEqual(entries.segment(entry));
            }
            coverage.count(group.kind() + " in a table");
        }
    }

    /// What a table has shown of a block stays in its place until the table is closed, whether the rest comes or
    /// not.
    private void checkLayers(HeldTable each) {
        BlockTable table = each.table;
        int layers = table.readyLayers();
        require(layers >= each.layers, () -> "a table of " + each.layers + " layers has only " + layers);
        coverage.countIf("layer arrived in a table", layers > each.layers && layers < BlockTable.ALL_LAYERS);
        each.layers = layers;
        each.parts.forEach(
                (block, bytes) -> SimKeySpace.content(each.chain.key(block)).requireEqual(0, bytes));
        for (int i = table.readyEnd(); layers > 0 && i < table.endBlock(); i++) {
            MemorySegment bytes = table.readySegment(i);
            SimKeySpace.content(each.chain.key(i)).requireEqual(0, bytes);
            each.parts.put(i, bytes);
        }
        coverage.countIf(
                "block of which layers had come did not come",
                table.endBlock() == table.readyEnd()
                        && each.parts.keySet().stream().anyMatch(block -> block >= table.endBlock()));
    }

    void closeOne() {
        if (!held.isEmpty()) {
            close(held.remove(random.nextInt(held.size())));
        }
    }

    private void close(HeldTable each) {
        checkAll(each, Integer.MAX_VALUE);
        coverage.countIf("table ends before its chain", each.table.endBlock() < each.chain.length());
        coverage.countIf(
                "table closed while blocks come", each.table.endBlock() > each.table.firstBlock() + each.ready);
        each.table.close();
    }

    void closeAll() {
        while (!held.isEmpty()) {
            close(held.removeLast());
        }
    }

    /// Forgets all tables without closing them, as their store was closed or has crashed.
    void discardAll() {
        held.clear();
    }
}
