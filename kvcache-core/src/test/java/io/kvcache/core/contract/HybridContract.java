package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Namespaces with a sliding window and a recurrent state beside full attention.
public abstract class HybridContract extends KvCacheContract {

    private static final int FULL = 0;
    private static final int WINDOW = 1;
    private static final int STATE = 2;
    private static final Duration A_MINUTE = Duration.ofMinutes(1);

    /// A window of four blocks, and a state each fourth block. Each has a size of its own.
    private static final Namespace SPACE = Namespace.builder("hybrid")
            .part(part(0, PartKind.FULL, 0, 4, BLOCK_TOKENS))
            .part(part(1, PartKind.WINDOW, 3 * BLOCK_TOKENS + 2, 2, BLOCK_TOKENS))
            .part(part(2, PartKind.STATE, 0, 64, 4 * BLOCK_TOKENS))
            .build();

    protected HybridContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    private static Part part(int group, PartKind kind, int window, int layers, int blockTokens) {
        BlockShape shape = BlockShape.kv(layers, 1, 64, blockTokens, Dtype.BF16);
        return new Part(group, 0, kind, window, shape, RopeOrigin.FROM_ZERO);
    }

    @BeforeEach
    final void register() {
        cache().register(SPACE);
    }

    private PutOutcome put(BlockChain chain, int index, int part) {
        PartGroup group = chain.namespace().groupOf(part);
        BlockChain content = group == null ? chain : chain.entry(group, group.entryBehind(index));
        try (BlockWriter writer = cache().put(chain, index, part, A_MINUTE)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                BlockContent.of(content.key(group == null ? index : 0)).fill(writer.segment());
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
            return writer.outcome();
        }
    }

    /// A chain of 16 blocks with everything.
    private BlockChain stored(int seed) {
        BlockChain chain = chain(SPACE, seed, 16);
        for (int index = 0; index < chain.length(); index++) {
            assertThat(put(chain, index, FULL)).isEqualTo(PutOutcome.RESERVED);
            assertThat(put(chain, index, WINDOW)).isEqualTo(PutOutcome.RESERVED);
            if (index % 4 == 3) {
                assertThat(put(chain, index, STATE)).isEqualTo(PutOutcome.RESERVED);
            }
        }
        return chain;
    }

    private void requireMatch(BlockChain chain, int blocks, int fullBlocks) {
        Match match = cache().match(chain);
        assertThat(match.blocks()).isEqualTo(blocks);
        assertThat(match.fullBlocks()).isEqualTo(fullBlocks);
    }

    /// Checks that all that a match needs is there, with the right bytes.
    ///
    /// @return end of the match
    private static int check(BlockChain chain, BlockTable table) {
        int end = table.await(table.endBlock(), A_MINUTE);
        for (int index = table.firstBlock(); index < end; index++) {
            BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
        }
        for (PartGroup group :
                end > table.firstBlock() ? SPACE.groups() : SPACE.groups().subList(0, 0)) {
            BlockTable entries = table.part(SPACE.parts().indexOf(group.parts().getFirst()));
            assertThat(entries.firstBlock()).isEqualTo(group.firstNeeded(end));
            assertThat(entries.endBlock()).isEqualTo(group.entries(end));
            assertThat(entries.await(entries.endBlock(), A_MINUTE)).isEqualTo(group.entries(end));
            for (int entry = entries.firstBlock(); entry < entries.readyEnd(); entry++) {
                BlockContent.of(chain.entry(group, entry).key(0)).requireEqual(entries.segment(entry));
            }
        }
        assertThat(table.isValid()).isTrue();
        return end;
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAllParts_whenAcquired_thenBlocksComeWithTheLastWindowAndState() {
        BlockChain chain = stored(1);
        requireMatch(chain, 16, 16);
        for (Duration timeout : new Duration[] {KvCache.NO_WAIT, A_MINUTE}) {
            try (BlockTable table = cache().acquire(chain, 0, timeout)) {
                assertThat(check(chain, table)).isEqualTo(16);
                assertThat(table.part(FULL)).isSameAs(table);
                assertThat(table.part(WINDOW).blocks()).isEqualTo(4);
                assertThat(table.part(STATE).firstBlock()).isEqualTo(3);
                assertThat(table.part(STATE).blocks()).isEqualTo(1);
            }
            try (BlockTable table = cache().acquire(chain.prefix(11), 2, timeout)) {
                assertThat(check(chain, table)).isEqualTo(8);
            }
            try (BlockTable table = cache().acquire(chain.prefix(3), 0, timeout)) {
                assertThat(check(chain, table)).as("no state").isZero();
            }
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAMissingState_whenMatched_thenTheMatchIsShorterAndSaysWhereOneIsWanted() {
        BlockChain chain = chain(SPACE, 1, 16);
        for (int index = 0; index < 14; index++) {
            put(chain, index, FULL);
            put(chain, index, WINDOW);
        }
        assertThat(cache().match(chain).blocks()).isZero();
        assertThat(cache().match(chain).checkpointWanted()).isEqualTo(14);
        put(chain, 7, STATE);
        requireMatch(chain, 8, 14);
        assertThat(cache().match(chain, A_MINUTE).checkpointWanted()).isEqualTo(14);
        try (BlockTable table = cache().acquire(chain)) {
            assertThat(check(chain, table)).isEqualTo(8);
        }
    }

    @Test
    void givenNoBlockOrAPlaceBetween_whenAnEntryIsPut_thenItIsRefused() {
        BlockChain chain = chain(SPACE, 1, 16);
        assertThat(put(chain, 0, WINDOW)).isEqualTo(PutOutcome.NO_PARENT);
        put(chain, 0, FULL);
        assertThat(put(chain, 0, WINDOW)).isEqualTo(PutOutcome.RESERVED);
        assertThat(put(chain, 0, WINDOW)).isEqualTo(PutOutcome.PRESENT);
        assertThat(put(chain, 3, STATE)).isEqualTo(PutOutcome.NO_PARENT);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> cache().put(chain, 0, STATE, KvCache.NO_WAIT))
                .withMessage("block 0 has no entry of STATE parts behind it; allowed: block 3 and each 4th after it");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> cache().put(chain, 0, 3, KvCache.NO_WAIT))
                .withMessageContaining("part is 3")
                .withMessageContaining("takes 0 to 2");
    }

    @Test
    void givenEntries_whenBlocksAreDropped_thenTheyAreGoneAndHeldOnesStayReadable() {
        BlockChain chain = stored(1);
        try (BlockTable table = cache().acquire(chain)) {
            cache().drop(chain, 6);
            requireMatch(chain, 4, 6);
            assertThat(check(chain, table)).isEqualTo(16);
        }
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(6 + 6 + 1);
        cache().drop(SPACE);
        assertThat(cache().stats().records().live()).isZero();
    }
}
