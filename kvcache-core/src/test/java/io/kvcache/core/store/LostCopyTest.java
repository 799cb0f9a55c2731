package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.RecordHandle;
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
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final FakeDisk disk = new FakeDisk();
    private final BlockChain chain =
            BlockChain.of(SPACE, IntStream.range(0, LENGTH * 4).toArray());

    @BeforeEach
    void writeTheFirst() {
        assertThat(tierPort.addDisk(1 << 20)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        NamespaceEntry entry = store.register(SPACE);
        for (int index = 0; index < LENGTH; index++) {
            store.seal(store.reserve(entry, chain, index, false).record(), index);
        }
        for (int index = 0; index < WRITTEN; index++) {
            write(index);
        }
        disk.reclaim(tierPort, 0, WRITTEN, 0);
        assertThat(tierPort.stats().disks().getFirst().blocks()).isZero();
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    /// Takes the next write, which must be of this block.
    private TierPort.PendingWrite next(int index) {
        TierPort.PendingWrite write = Objects.requireNonNull(tierPort.nextWrite(0));
        assertThat(write.block().keyLo()).isEqualTo(chain.keyLo(index));
        return write;
    }

    private void write(int index) {
        TierPort.PendingWrite write = next(index);
        tierPort.onWritten(write.record(), 0, disk.write(write.block(), BYTES));
    }

    @Test
    void givenBlocksWhoseCopiesLeftTheDisk_whenThoseBelowAreWritten_thenTheyAreWrittenAnewBefore() {
        long mark = tierPort.flushMark();
        long unwritten = tierPort.unwrittenCount();
        for (int index = 0; index < LENGTH; index++) {
            assertThat(tierPort.settledWrites()).as("what a flush waits for").isLessThan(mark);
            write(index);
        }
        assertThat(tierPort.settledWrites()).isEqualTo(mark);
        assertThat(tierPort.unwrittenCount()).isEqualTo(unwritten);
        assertThat(tierPort.nextWrite(0)).isNull();
        assertThat(tierPort.stats().disks().getFirst().blocks()).isEqualTo(LENGTH);
        assertThat(tierPort.stats().written()).isEqualTo(tierPort.stats().admitted());
        assertThat(tierPort.stats().waitingBytes()).isZero();
    }

    @Test
    void givenABlockThatIsBeingWrittenAnew_whenTheNextIsAskedFor_thenItFollowsAtOnce() {
        for (int index = 0; index < LENGTH; index++) {
            next(index);
        }
        assertThat(tierPort.stats().writing()).isEqualTo(LENGTH);
        for (int index = 0; index < LENGTH; index++) {
            long handle = store.lookup().findKnown(chain.keyHi(index), chain.keyLo(index));
            tierPort.onWritten(RecordHandle.record(handle), 0, index);
        }
        assertThat(tierPort.stats().disks().getFirst().blocks()).isEqualTo(LENGTH);
    }

    @Test
    void givenABlockThatTheDiskRefuses_whenThoseBelowAreAskedFor_thenItIsTriedOnceForEach() {
        long unwritten = tierPort.unwrittenCount();
        for (int waiting = WRITTEN; waiting < LENGTH; waiting++) {
            tierPort.onWritten(next(0).record(), 0, -1);
        }
        assertThat(tierPort.nextWrite(0)).isNull();
        assertThat(tierPort.settledWrites()).isEqualTo(tierPort.flushMark());
        assertThat(tierPort.unwrittenCount()).isEqualTo(unwritten + 2 * (LENGTH - WRITTEN));
    }
}
