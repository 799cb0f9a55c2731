package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks on their way in: reserve, fill, seal or abandon.
public abstract class BlockWriterContract extends KvCacheContract {

    protected BlockWriterContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAReservedBlock_whenLookedUp_thenInvisibleUntilItIsSealed() {
        BlockChain chain = chain(1, 1);
        try (BlockWriter writer = reserve(chain, 0)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            assertThat(writer.segment().byteSize()).isEqualTo(blockBytes(MIB));
            content(chain, 0).fill(writer.segment());
            assertThat(match(chain)).isZero();
            assertThat(verified(chain)).isZero();
            assertThat(cache().events().snapshot().stored()).isEmpty();
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            assertThat(verified(chain)).isEqualTo(1);
        }
        assertThat(verified(chain)).as("after the writer is closed").isEqualTo(1);
    }

    @Test
    void givenAWriterAtABlock_whenAnotherAsks_thenItIsBusyAndCannotSeal() {
        BlockChain chain = chain(1, 1);
        try (BlockWriter first = reserve(chain, 0);
                BlockWriter second = reserve(chain, 0)) {
            assertThat(second.outcome()).isEqualTo(PutOutcome.BUSY);
            requireNothingToWrite(second);
            content(chain, 0).fill(first.segment());
            assertThat(first.seal()).isEqualTo(SealOutcome.SEALED);
        }
        assertThat(verified(chain)).isEqualTo(1);
        CacheStats.Puts puts = cache().stats().puts();
        assertThat(puts.reserved()).isEqualTo(1);
        assertThat(puts.busy()).isEqualTo(1);
        assertThat(puts.abandoned()).isZero();
    }

    @Test
    void givenAStoredBlock_whenPutAgain_thenPresentAndNothingToWrite() {
        BlockChain chain = stored(chain(1, 1));
        try (BlockWriter again = reserve(chain, 0)) {
            assertThat(again.outcome()).isEqualTo(PutOutcome.PRESENT);
            requireNothingToWrite(again);
        }
        assertThat(verified(chain)).isEqualTo(1);
        assertThat(cache().stats().puts().present()).isEqualTo(1);
    }

    private static void requireNothingToWrite(BlockWriter writer) {
        assertThatIllegalStateException()
                .isThrownBy(writer::segment)
                .withMessageContaining(writer.outcome().name());
        assertThatIllegalStateException()
                .isThrownBy(writer::seal)
                .withMessageContaining(writer.outcome().name());
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAnAbandonedBlock_whenLookedUp_thenNothingIsLeftAndAllBytesAreBack() {
        BlockChain chain = chain(1, 1);
        subject().settle();
        CacheStats before = cache().stats();
        BlockWriter writer = reserve(chain, 0);
        subject().settle();
        assertThat(cache().stats().host().heldBytes())
                .isGreaterThan(before.host().heldBytes());
        writer.close();
        writer.close();
        subject().settle();
        CacheStats after = cache().stats();
        assertThat(after.host().heldBytes()).isEqualTo(before.host().heldBytes());
        assertThat(after.records().live()).isEqualTo(before.records().live());
        assertThat(after.puts().abandoned()).isEqualTo(1);
        assertThat(match(chain)).isZero();
        assertThat(verified(stored(chain))).isEqualTo(1);
    }

    @Test
    void givenNoParent_whenPut_thenRefused() {
        BlockChain chain = chain(1, 5);
        stored(chain.prefix(2));
        try (BlockWriter writer = reserve(chain, 3)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.NO_PARENT);
            requireNothingToWrite(writer);
        }
        assertThat(match(chain)).isEqualTo(2);
        assertThat(cache().stats().puts().noParent()).isEqualTo(1);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenChildrenSealedFirst_whenTheirParentSeals_thenAllAppearAtOnce() {
        BlockChain chain = chain(1, 3);
        try (BlockWriter first = reserve(chain, 0);
                BlockWriter second = reserve(chain, 1);
                BlockWriter third = reserve(chain, 2)) {
            content(chain, 2).fill(third.segment());
            assertThat(third.seal()).isEqualTo(SealOutcome.PENDING);
            content(chain, 1).fill(second.segment());
            assertThat(second.seal()).isEqualTo(SealOutcome.PENDING);
            assertThat(match(chain)).isZero();
            assertThat(outcome(chain, 2)).isEqualTo(PutOutcome.BUSY);
            content(chain, 0).fill(first.segment());
            assertThat(first.seal()).isEqualTo(SealOutcome.SEALED);
            assertThat(verified(chain)).isEqualTo(3);
        }
        assertThat(verified(chain)).isEqualTo(3);
    }

    @Test
    @SuppressWarnings("try") // abandons early
    void givenParentAbandoned_whenChildrenSeal_thenDroppedAndAllBytesAreBack() {
        BlockChain chain = chain(1, 3);
        try (BlockWriter first = reserve(chain, 0);
                BlockWriter second = reserve(chain, 1);
                BlockWriter third = reserve(chain, 2)) {
            assertThat(third.seal()).isEqualTo(SealOutcome.PENDING);
            first.close();
            assertThat(second.seal()).isEqualTo(SealOutcome.DROPPED);
        }
        assertThat(match(chain)).isZero();
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
        subject().settle();
        assertThat(cache().stats().records().live()).isZero();
        assertThat(verified(stored(chain))).isEqualTo(3);
    }

    @Test
    void givenAChainDroppedWhileItIsWritten_whenItSeals_thenDropped() {
        BlockChain chain = chain(1, 3);
        stored(chain.prefix(1));
        try (BlockWriter second = reserve(chain, 1);
                BlockWriter third = reserve(chain, 2)) {
            assertThat(cache().drop(chain, 0)).isEqualTo(1);
            assertThat(third.seal()).isEqualTo(SealOutcome.DROPPED);
            assertThat(verified(stored(chain)))
                    .as("while the old writer is open")
                    .isEqualTo(3);
            second.segment().fill((byte) 7);
            assertThat(second.seal()).isEqualTo(SealOutcome.DROPPED);
        }
        assertThat(verified(chain)).isEqualTo(3);
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(3);
    }

    @Test
    void givenASealedWriter_whenUsed_thenItThrowsAndCloseDoesNothing() {
        BlockChain chain = chain(1, 1);
        BlockWriter writer = reserve(chain, 0);
        content(chain, 0).fill(writer.segment());
        writer.seal();
        requireClosed(writer, chain);
        writer.close();
        writer.close();
        requireClosed(writer, chain);
        assertThat(verified(chain)).isEqualTo(1);
        assertThat(cache().stats().puts().abandoned()).isZero();
    }

    @Test
    void givenAClosedWriter_whenUsed_thenItThrows() {
        BlockChain chain = chain(1, 1);
        BlockWriter writer = reserve(chain, 0);
        writer.close();
        requireClosed(writer, chain);
        assertThat(match(chain)).isZero();
    }

    private static void requireClosed(BlockWriter writer, BlockChain chain) {
        assertThatIllegalStateException().isThrownBy(writer::segment);
        assertThatIllegalStateException().isThrownBy(writer::seal);
        assertThatIllegalStateException()
                .isThrownBy(() -> writer.copyFrom(content(chain, 0).toHeapSegment((int) blockBytes(MIB))));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, (1 << 20) - 1, (1 << 20) + 1})
    void givenASourceOfTheWrongSize_whenCopied_thenRefusedWithBothSizes(int bytes) {
        BlockChain chain = chain(1, 1);
        try (BlockWriter writer = reserve(chain, 0)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> writer.copyFrom(content(chain, 0).toHeapSegment(bytes)))
                    .withMessageContaining("" + bytes)
                    .withMessageContaining("" + blockBytes(MIB));
            writer.copyFrom(content(chain, 0).toHeapSegment((int) blockBytes(MIB)));
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
        }
        assertThat(verified(chain)).isEqualTo(1);
    }

    @Test
    void givenAReader_whenItHoldsAnotherBlock_thenWritingDoesNotDisturbIt() {
        BlockChain chain = stored(chain(1, 4));
        try (BlockTable table = cache().acquire(chain)) {
            stored(chain(2, 60));
            requireContent(table, chain);
        }
    }

    /// Writers of one chain seal or abandon in random order; what is found is what lies above the first gap.
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void givenWritersInAnyOrder_whenTheySealOrAbandon_thenAPrefixIsFound(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        BlockChain chain = chain((int) seed, 12);
        List<BlockWriter> writers = new ArrayList<>();
        List<Integer> open = new ArrayList<>();
        boolean[] sealed = new boolean[12];
        int cut = 12;
        for (int index = 0; index < 12; index++) {
            writers.add(reserve(chain, index));
            content(chain, index).fill(writers.get(index).segment());
            open.add(index);
        }
        while (!open.isEmpty()) {
            int index = open.remove(/* index */ random.nextInt(open.size()));
            if (random.nextInt(8) == 0) {
                cut = Math.min(cut, index);
                writers.get(index).close();
            } else {
                sealed[index] = true;
                int expected = prefix(sealed, cut);
                SealOutcome outcome = writers.get(index).seal();
                assertThat(outcome)
                        .as("seed %d, block %d, cut at %d", seed, index, cut)
                        .isEqualTo(
                                index >= cut
                                        ? SealOutcome.DROPPED
                                        : index < expected ? SealOutcome.SEALED : SealOutcome.PENDING);
            }
            assertThat(verified(chain)).as("seed %d", seed).isEqualTo(prefix(sealed, cut));
            subject().validate();
        }
        writers.forEach(BlockWriter::close);
    }

    private static int prefix(boolean[] sealed, int cut) {
        int length = 0;
        while (length < cut && sealed[length]) {
            length++;
        }
        return length;
    }
}
