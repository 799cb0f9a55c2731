package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.KvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlabPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// A full store: blocks that must be evicted, blocks that must not, and the answer when none can.
public abstract class CapacityContract extends KvCacheContract {

    private static final byte[] KEY = {1};

    protected CapacityContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    /// Blocks of 1 MiB that the store holds.
    private int capacity() {
        return (int) (cache().stats().host().capacityBytes() / blockBytes(MIB));
    }

    @Test
    void givenMoreThanFits_whenPut_thenOfEachChainAPrefixStays() {
        List<BlockChain> chains = new ArrayList<>();
        for (int seed = 1; seed <= 20; seed++) {
            chains.add(stored(chain(seed, 6)));
        }
        int found = chains.stream().mapToInt(this::verified).sum();
        assertThat(found).isEqualTo(capacity());
        CacheStats stats = cache().stats();
        assertThat(stats.removals().evicted()).isEqualTo(120 - capacity());
        assertThat(stats.host().heldBytes()).isEqualTo(stats.host().capacityBytes());
    }

    @Test
    void givenOneChainThatFillsTheStore_whenABlockComes_thenItsTailGoes() {
        BlockChain chain = stored(chain(1, capacity()));
        put(chain(2, 1), 0);
        assertThat(match(chain)).isEqualTo(capacity() - 1);
        put(chain(3, 1), 0);
        assertThat(verified(chain) + match(chain(2, 1)) + match(chain(3, 1))).isEqualTo(capacity());
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAPinnedTable_whenTheStoreOverflows_thenItsBlocksStay() {
        BlockChain pinned = stored(chain(1, 20));
        try (BlockTable table = cache().acquire(pinned)) {
            for (int seed = 2; seed < 30; seed++) {
                stored(chain(seed, 6));
            }
            assertThat(match(pinned)).isEqualTo(20);
            requireContent(table, pinned);
        }
    }

    @Test
    void givenATableOfTheTail_whenTheStoreOverflows_thenItsHeadStaysToo() {
        BlockChain pinned = stored(chain(1, 20));
        try (BlockTable table = cache().acquire(pinned, 19, KvCache.NO_WAIT)) {
            for (int seed = 2; seed < 30; seed++) {
                stored(chain(seed, 6));
            }
            assertThat(verified(pinned)).isEqualTo(20);
            requireContent(table, pinned);
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenEverythingPinned_whenPut_thenRefusedByValueAndCounted() {
        BlockChain chain = stored(chain(1, capacity()));
        try (BlockTable table = cache().acquire(chain)) {
            try (BlockWriter writer = reserve(chain(2, 1), 0)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.NO_ROOM);
            }
            try (ObjectWriter writer = cache().putObject(OBJECTS, KEY, 10, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.NO_ROOM);
            }
            assertThat(cache().stats().puts().noRoom()).as("one a put").isEqualTo(2);
            assertThat(cache().stats().removals().evicted()).isZero();
            requireContent(table, chain);
        }
        subject().settle();
        assertThat(outcome(chain(2, 1), 0)).isEqualTo(PutOutcome.RESERVED);
    }

    @Test
    void givenEverythingBeingWritten_whenPut_thenRefusedByValue() {
        List<BlockWriter> writers = new ArrayList<>();
        for (int seed = 0; seed < capacity(); seed++) {
            writers.add(reserve(chain(seed, 1), 0));
        }
        assertThat(writers).allMatch(writer -> writer.outcome() == PutOutcome.RESERVED);
        assertThat(outcome(chain(1000, 1), 0)).isEqualTo(PutOutcome.NO_ROOM);
        writers.getFirst().close();
        assertThat(outcome(chain(1000, 1), 0)).isEqualTo(PutOutcome.RESERVED);
        writers.forEach(BlockWriter::close);
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAPutThatWaits_whenATableCloses_thenItGetsTheRoom() throws Exception {
        BlockTable table = cache().acquire(stored(chain(1, capacity())));
        BlockChain wanted = chain(2, 1);
        try (ExecutorService other = Executors.newSingleThreadExecutor()) {
            Future<PutOutcome> waiting = other.submit(() -> {
                try (BlockWriter writer = cache().put(wanted, 0, 0, subject().patience())) {
                    return writer.outcome();
                }
            });
            awaitRefusal();
            table.close();
            assertThat(waiting.get()).isEqualTo(PutOutcome.RESERVED);
        }
    }

    @Test
    void givenAnObjectThatWaits_whenAViewCloses_thenItGetsTheRoom() throws Exception {
        int large = 60 << 20;
        putObject(KEY, content(OBJECTS, KEY), large);
        ObjectView view = view(KEY);
        try (ExecutorService other = Executors.newSingleThreadExecutor()) {
            Future<PutOutcome> waiting = other.submit(() -> {
                Duration patience = Duration.ofNanos(subject().patience().toNanos());
                try (ObjectWriter writer = cache().putObject(OBJECTS, new byte[] {2}, large, patience)) {
                    return writer.outcome();
                }
            });
            awaitRefusal();
            view.close();
            assertThat(waiting.get()).isEqualTo(PutOutcome.RESERVED);
        }
    }

    /// Until a put was told that there is no room.
    private void awaitRefusal() {
        long start = System.nanoTime();
        while (cache().stats().puts().attemptsWithoutRoom() == 0) {
            assertThat(System.nanoTime() - start)
                    .isLessThan(subject().patience().toNanos());
            Pause.briefly();
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenEverythingPinned_whenAPutWaits_thenNoLongerThanItsTimeout() {
        try (BlockTable table = cache().acquire(stored(chain(1, capacity())))) {
            assertThat(table.readyBlocks()).isEqualTo(capacity());
            long timeout = TimeUnit.MILLISECONDS.toNanos(30);
            long start = System.nanoTime();
            try (BlockWriter writer = cache().put(chain(2, 1), 0, 0, Duration.ofNanos(timeout))) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.NO_ROOM);
            }
            assertThat(System.nanoTime() - start)
                    .isBetween(timeout, timeout + subject().patience().toNanos());
        }
    }

    @Test
    void givenAStoreFullOfOneSize_whenOthersCome_thenTheyFindRoom() {
        Namespace run = blocksOf("run", 640, 1024);
        cache().register(run);
        stored(chain(1, capacity()));
        putObject(KEY, content(OBJECTS, KEY), 5000);
        BlockChain small = stored(chain(SMALL, 1, 40));
        assertThat(verified(small)).isEqualTo(40);
        subject().settle(); // what is still held is not evicted
        assertThat(verified(stored(chain(run, 1, 1)))).isEqualTo(1);
        subject().settle();
        putObject(KEY, content(OBJECTS, KEY), 50 << 20);
        stored(chain(2, capacity()));
        assertThat(verified(chain(2, capacity()))).isEqualTo(capacity());
        subject().validate();
    }

    @Test
    void givenAnObjectLargerThanTheStore_whenPut_thenRefusedAndNothingIsEvicted() {
        BlockChain chain = stored(chain(1, 10));
        try (ObjectWriter writer = cache().putObject(OBJECTS, KEY, KvCache.MAX_OBJECT_BYTES, KvCache.NO_WAIT)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.NO_ROOM);
        }
        assertThat(verified(chain)).isEqualTo(10);
    }

    @Test
    void givenAViewedObject_whenTheStoreOverflows_thenItStays() {
        putObject(KEY, content(OBJECTS, KEY), 3_000_000);
        try (ObjectView view = view(KEY)) {
            for (int seed = 1; seed < 30; seed++) {
                stored(chain(seed, 5));
            }
            requireContent(view, content(OBJECTS, KEY), 3_000_000);
            assertThat(cache().containsObject(OBJECTS, KEY)).isTrue();
        }
    }

    @Test
    void givenAnyUse_whenCounted_thenTheStatisticsAddUp() {
        BlockChain chain = chain(1, 10);
        stored(chain.prefix(4));
        verified(chain);
        cache().acquire(chain, 2, KvCache.NO_WAIT).close();
        putObject(KEY, content(OBJECTS, KEY), 5000);
        view(KEY).close();
        assertThat(cache().getObject(OBJECTS, new byte[] {9})).isNull();
        CacheStats stats = cache().stats();
        NamespaceStats blocks = of(stats, MIB);
        NamespaceStats objects = of(stats, OBJECTS);
        assertThat(blocks).isEqualTo(new NamespaceStats(MIB, 10 + 8, 4 + 2, 0, 0, 0, 0, 4, 4 * blockBytes(MIB)));
        assertThat(objects.objectsRequested()).isEqualTo(2);
        assertThat(objects.objectsFound()).isEqualTo(1);
        assertThat(objects.live()).isEqualTo(1);
        assertThat(objects.liveBytes()).isBetween(5000L, 5000L + KvCache.MAX_OBJECT_KEY_BYTES);
        assertThat(stats.hitRatio()).isEqualTo(6.0 / 18);
        assertThat(stats.records().live()).isEqualTo(5);
        assertThat(stats.host().heldBytes()).isEqualTo(4 * blockBytes(MIB) + 8192);
        assertThat(stats.host().slabs() * SlabPool.slabBytes(stats.host().capacityBytes()))
                .isEqualTo(stats.host().capacityBytes());
        assertThat(stats.puts().reserved()).isEqualTo(5);
    }

    private static NamespaceStats of(CacheStats stats, Namespace namespace) {
        return stats.namespaces().stream()
                .filter(each -> each.namespace().equals(namespace))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void givenATable_whenAnotherThreadClosesIt_thenItsBlocksAreFree() throws Exception {
        BlockChain chain = stored(chain(1, 64));
        BlockTable table = cache().acquire(chain);
        try (ExecutorService other = Executors.newSingleThreadExecutor()) {
            other.submit(table::close).get();
        }
        subject().settle();
        assertThat(verified(stored(chain(2, 64)))).isEqualTo(64);
        assertThat(match(chain)).isZero();
    }

    @Test
    void givenSeveralTablesOfOneChain_whenSomeClose_thenTheOthersHoldItsBlocks() {
        BlockChain chain = stored(chain(1, 30));
        BlockTable first = cache().acquire(chain);
        BlockTable second = cache().acquire(chain.prefix(10));
        assertThat(cache().stats().openTables()).isEqualTo(2);
        first.close();
        subject().settle();
        stored(chain(2, 54));
        assertThat(match(chain)).isEqualTo(10);
        requireContent(second, chain);
        second.close();
    }
}
