package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.identity.BlockChain;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Opening and closing: of tables, views and the cache itself.
public abstract class LifecycleContract extends KvCacheContract {

    private static final byte[] KEY = {1};

    protected LifecycleContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    @Test
    void givenAFreshCache_whenAsked_thenItIsEmpty() {
        subject().settle();
        CacheStats stats = cache().stats();
        assertThat(stats.host().heldBytes()).isZero();
        assertThat(stats.host().unusedSlabs()).isEqualTo(stats.host().slabs());
        assertThat(stats.records().live()).isZero();
        assertThat(stats.records().capacity()).isPositive();
        assertThat(stats.openTables()).isZero();
        assertThat(stats.puts()).isEqualTo(new CacheStats.Puts(0, 0, 0, 0, 0, 0, 0, 0, 0));
        assertThat(stats.removals()).isEqualTo(new CacheStats.Removals(0, 0, 0, 0));
        assertThat(stats.namespaces()).hasSize(3);
        assertThat(stats.hitRatio()).isZero();
        assertThat(cache().events().nextSequence()).isZero();
    }

    @Test
    void givenARegisteredNamespace_whenRegisteredAgain_thenNothingChanges() {
        BlockChain chain = stored(chain(1, 2));
        cache().register(MIB);
        cache().register(MIB.toBuilder().build());
        assertThat(cache().stats().namespaces()).hasSize(3);
        assertThat(verified(chain)).isEqualTo(2);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAClosedTable_whenUsed_thenItThrows() {
        BlockChain chain = stored(chain(1, 2));
        BlockTable table = cache().acquire(chain);
        assertThat(cache().stats().openTables()).isEqualTo(1);
        table.close();
        table.close();
        subject().settle();
        assertThat(cache().stats().openTables()).isZero();
        assertThatIllegalStateException().isThrownBy(() -> table.segment(0));
        assertThatIllegalStateException()
                .isThrownBy(() -> table.copyTo(0, MemorySegment.ofArray(new byte[(int) blockBytes(MIB)])));
    }

    @Test
    void givenTheTableOfAMiss_whenClosedTwice_thenItCountsOnce() {
        BlockTable other = cache().acquire(stored(chain(1, 1)));
        BlockTable table = cache().acquire(chain(2, 2));
        table.close();
        table.close();
        subject().settle();
        assertThat(cache().stats().openTables()).isEqualTo(1);
        other.close();
    }

    @Test
    void givenAClosedView_whenUsed_thenItThrows() {
        putObject(KEY, content(OBJECTS, KEY), 5000);
        ObjectView view = view(KEY);
        assertThat(cache().stats().openTables()).isEqualTo(1);
        view.close();
        view.close();
        subject().settle();
        assertThat(cache().stats().openTables()).isZero();
        assertThatIllegalStateException().isThrownBy(view::segments);
        assertThatIllegalStateException().isThrownBy(() -> view.copyTo(0, 1, MemorySegment.ofArray(new byte[1])));
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAReadOnlySegment_whenWrittenTo_thenItThrows() {
        BlockChain chain = stored(chain(1, 1));
        putObject(KEY, content(OBJECTS, KEY), 5000);
        try (BlockTable table = cache().acquire(chain);
                ObjectView view = view(KEY)) {
            assertThatThrownBy(() -> table.segment(0).set(ValueLayout.JAVA_BYTE, 0, (byte) 0))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> view.segments().getFirst().set(ValueLayout.JAVA_BYTE, 0, (byte) 0))
                    .isInstanceOf(IllegalArgumentException.class);
            requireContent(table, chain);
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenACheckedCache_whenASegmentOutlivesItsTable_thenItThrows() {
        assumeThat(subject().checked()).as("checked segments").isTrue();
        BlockChain chain = stored(chain(1, 1));
        putObject(KEY, content(OBJECTS, KEY), 5000);
        MemorySegment block;
        MemorySegment piece;
        try (BlockTable table = cache().acquire(chain);
                ObjectView view = view(KEY)) {
            block = table.segment(0);
            piece = view.segments().getFirst();
        }
        for (MemorySegment stale : List.of(block, piece)) {
            assertThatIllegalStateException().isThrownBy(() -> stale.get(ValueLayout.JAVA_BYTE, 0));
        }
    }

    @Test
    void givenACheckedCache_whenASegmentOutlivesItsWriter_thenItThrows() {
        assumeThat(subject().checked()).as("checked segments").isTrue();
        MemorySegment sealed;
        MemorySegment abandoned;
        MemorySegment piece;
        try (BlockWriter first = reserve(chain(1, 1), 0);
                BlockWriter second = reserve(chain(2, 1), 0);
                ObjectWriter third = cache().putObject(OBJECTS, KEY, 10, KvCache.NO_WAIT)) {
            sealed = first.segment();
            abandoned = second.segment();
            piece = third.segments().getFirst();
            first.seal();
            assertThatIllegalStateException().isThrownBy(() -> sealed.set(ValueLayout.JAVA_BYTE, 0, (byte) 1));
        }
        for (MemorySegment stale : List.of(abandoned, piece)) {
            assertThatIllegalStateException().isThrownBy(() -> stale.set(ValueLayout.JAVA_BYTE, 0, (byte) 1));
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAClosedCache_whenUsed_thenItThrowsAndASecondCloseDoesNothing() {
        CacheUnderTest other = open(CacheSetup.SMALL);
        KvCache closed = other.cache();
        closed.register(MIB);
        closed.close();
        closed.close();
        assertThatIllegalStateException().isThrownBy(() -> closed.register(MIB));
        assertThatIllegalStateException().isThrownBy(() -> closed.match(chain(1, 1)));
        assertThatIllegalStateException().isThrownBy(() -> closed.acquire(chain(1, 1)));
        assertThatIllegalStateException().isThrownBy(() -> closed.put(chain(1, 1), 0, 0, KvCache.NO_WAIT));
        assertThatIllegalStateException().isThrownBy(() -> closed.drop(chain(1, 1), 0));
        assertThatIllegalStateException().isThrownBy(closed::stats);
        other.close();
    }

    @Test
    void givenAClosedTable_whenItIsWaitedForByAStage_thenThatCompletes() {
        try (BlockWriter writer = cache().put(chain(1, 1), 0, 0, KvCache.NO_WAIT)) {
            content(chain(1, 1), 0).fill(writer.segment());
            writer.seal();
        }
        BlockTable table = cache().acquire(chain(1, 2), 0, Duration.ofHours(1));
        table.close();

        assertThat(table.onReady(2, Runnable::run).toCompletableFuture())
                .succeedsWithin(Duration.ofSeconds(60))
                .asInstanceOf(InstanceOfAssertFactories.INTEGER)
                .isBetween(0, 1);
    }

    @Test
    void givenAStrictCache_whenClosedWithATable_thenItThrowsAndTheTableStillReads() {
        CacheUnderTest other = open(CacheSetup.SMALL.withStrict());
        KvCache strict = other.cache();
        strict.register(MIB);
        BlockChain chain = chain(1, 1);
        try (BlockWriter writer = strict.put(chain, 0, 0, KvCache.NO_WAIT)) {
            content(chain, 0).fill(writer.segment());
            writer.seal();
        }
        BlockTable table = strict.acquire(chain);
        assertThatIllegalStateException().isThrownBy(strict::close).withMessageContaining("1");
        requireContent(table, chain);
        table.close();
        other.close();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenACache_whenClosedWithATable_thenItsBytesAreRightOrItThrows() {
        CacheUnderTest other = open(CacheSetup.SMALL);
        KvCache lenient = other.cache();
        lenient.register(MIB);
        BlockChain chain = chain(1, 1);
        try (BlockWriter writer = lenient.put(chain, 0, 0, KvCache.NO_WAIT)) {
            content(chain, 0).fill(writer.segment());
            writer.seal();
        }
        BlockTable table = lenient.acquire(chain);
        lenient.close();
        try {
            requireContent(table, chain);
        } catch (IllegalStateException gone) {
            assertThat(gone).hasMessageContaining("closed");
        }
        table.close();
        other.close();
    }
}
