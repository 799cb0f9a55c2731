package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.Handle;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Blocks that wait to be written, while the copies of those above them leave the disk.
final class LostCopyTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final MemorySegment BYTES = MemorySegment.ofArray(new long[1]);
    private static final int LENGTH = 4;
    private static final int WRITTEN = 2;

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.SLAB_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final Disks disks = store.disks();
    private final FakeDisk disk = new FakeDisk();
    private final BlockChain chain =
            BlockChain.of(SPACE, IntStream.range(0, LENGTH * 4).toArray());

    @BeforeEach
    void writeTheFirst() {
        assertThat(disks.open(1 << 20)).isZero();
        disks.admit(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.USUAL_GAIN);
        disks.restored();
        NamespaceEntry entry = store.register(SPACE);
        for (int index = 0; index < LENGTH; index++) {
            store.seal(store.reserve(entry, chain, index, false).record(), index);
        }
        for (int index = 0; index < WRITTEN; index++) {
            write(index);
        }
        disk.reclaim(disks, 0, WRITTEN, 0);
        assertThat(disks.stats().disks().getFirst().blocks()).isZero();
    }

    @AfterEach
    void close() {
        store.inspection().validate();
        store.close();
    }

    /// Takes the next write, which must be of this block.
    private Disks.Write next(int index) {
        Disks.Write write = Objects.requireNonNull(disks.nextWrite(0));
        assertThat(write.block().keyLo()).isEqualTo(chain.keyLo(index));
        return write;
    }

    private void write(int index) {
        Disks.Write write = next(index);
        disks.written(write.record(), 0, disk.write(write.block(), BYTES));
    }

    @Test
    void givenBlocksWhoseCopiesLeftTheDisk_whenThoseBelowAreWritten_thenTheyAreWrittenAnewBefore() {
        long mark = disks.mark();
        long unwritten = disks.unwritten();
        for (int index = 0; index < LENGTH; index++) {
            assertThat(disks.settled()).as("what a flush waits for").isLessThan(mark);
            write(index);
        }
        assertThat(disks.settled()).isEqualTo(mark);
        assertThat(disks.unwritten()).isEqualTo(unwritten);
        assertThat(disks.nextWrite(0)).isNull();
        assertThat(disks.stats().disks().getFirst().blocks()).isEqualTo(LENGTH);
        assertThat(disks.stats().written()).isEqualTo(disks.stats().admitted());
        assertThat(disks.stats().waitingBytes()).isZero();
    }

    @Test
    void givenABlockThatIsBeingWrittenAnew_whenTheNextIsAskedFor_thenItFollowsAtOnce() {
        for (int index = 0; index < LENGTH; index++) {
            next(index);
        }
        assertThat(disks.stats().writing()).isEqualTo(LENGTH);
        for (int index = 0; index < LENGTH; index++) {
            long handle = store.lookup().findKnown(chain.keyHi(index), chain.keyLo(index));
            disks.written(Handle.record(handle), 0, index);
        }
        assertThat(disks.stats().disks().getFirst().blocks()).isEqualTo(LENGTH);
    }

    @Test
    void givenABlockThatTheDiskRefuses_whenThoseBelowAreAskedFor_thenItIsTriedOnceForEach() {
        long unwritten = disks.unwritten();
        for (int waiting = WRITTEN; waiting < LENGTH; waiting++) {
            disks.written(next(0).record(), 0, -1);
        }
        assertThat(disks.nextWrite(0)).isNull();
        assertThat(disks.settled()).isEqualTo(disks.mark());
        assertThat(disks.unwritten()).isEqualTo(unwritten + 2 * (LENGTH - WRITTEN));
    }
}
