package io.kvcache.core.contract;

import static io.kvcache.core.contract.TierTestBlocks.BLOCKS;
import static io.kvcache.core.contract.TierTestBlocks.THINGS;
import static io.kvcache.core.contract.TierTestBlocks.content;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierRead.Outcome;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/// A tier over blank storage, with a store's side that a test drives, and what all tests of [TierContract] do
/// with them.
abstract class TierFixture {

    static final int DEFAULT_BYTES = 20_000;

    private final TierUnderTest.Factory factory;
    private final Arena arena = Arena.ofShared();
    final TierTestBlocks blocks = new TierTestBlocks(arena);
    TierUnderTest subject;
    TierDriver rig;
    boolean open;
    private int openings;

    @SuppressWarnings("NullAway.Init") // created before each test
    TierFixture(TierUnderTest.Factory factory) {
        this.factory = factory;
    }

    @BeforeEach
    final void createStorage() {
        subject = factory.create();
        rig = new TierDriver(subject.waitNanos());
    }

    @AfterEach
    final void closeAll() {
        try (Arena memory = arena) {
            assertThat(memory.scope().isAlive()).isTrue();
            close();
            subject.close();
        }
    }

    final Tier open() {
        return begin().openAndRecover(subject);
    }

    /// The store that opens the tier next; it numbers the namespaces the other way round than the one before.
    final TierDriver begin() {
        Namespace[] known = openings++ % 2 == 0 ? new Namespace[] {BLOCKS, THINGS} : new Namespace[] {THINGS, BLOCKS};
        rig = new TierDriver(subject.waitNanos(), known);
        open = true;
        return rig;
    }

    final void close() {
        if (open) {
            open = false;
            rig.close();
        }
    }

    final Tier reopen() {
        close();
        return open();
    }

    final TierBlock block(long key, int bytes) {
        return blocks.block(key, rig.namespaceId(BLOCKS), bytes);
    }

    final TierBlock object(long key, int version, int bytes) {
        return blocks.object(key, version, rig.namespaceId(THINGS), bytes);
    }

    final MemorySegment filled(BlockContent content, int bytes) {
        return blocks.filled(content, bytes);
    }

    final long write(TierBlock block) {
        return write(block, content(block.keyHi()));
    }

    final long write(TierBlock block, BlockContent content) {
        long place = rig.write(block, List.of(filled(content, block.bytes())));
        assertThat(place).isNotNegative();
        return place;
    }

    final TierBlock writeObject(long key, int version, int bytes) {
        TierBlock object = object(key, version, bytes);
        write(object, content(key).withVersion(version));
        return object;
    }

    final Outcome read(TierBlock block, long place, BlockContent content) {
        MemorySegment target = blocks.memory(block.bytes());
        Outcome outcome = rig.read(block, place, List.of(target));
        if (outcome == Outcome.SUCCESS) {
            content.requireEqual(target.asSlice(0, block.bytes()));
        }
        return outcome;
    }

    final void requireReadable(TierBlock block, long place) {
        assertThat(read(block, place, content(block.keyHi()))).isEqualTo(Outcome.SUCCESS);
    }
}
