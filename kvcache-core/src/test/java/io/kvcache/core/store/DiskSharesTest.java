package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.TierBlock;
import java.lang.foreign.MemorySegment;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Evictions from a full disk take from the group that has most there for its weight.
final class DiskSharesTest {

    private static final BlockShape SHAPE = BlockShape.kv(1, 8, 128, 4, Dtype.BF16);
    private static final MemorySegment CONTENT = MemorySegment.ofArray(new long[1]);

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 1000, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final FakeDisk disk = new FakeDisk();
    private final NamespaceEntry blue = store.register(Namespace.of("blue", SHAPE));
    private final NamespaceEntry green = store.register(Namespace.of("green", SHAPE));

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private void open(int blocks) {
        assertThat(tierPort.addDisk(blocks * SHAPE.bytes())).isZero();
    }

    /// Writes first blocks of chains.
    private void write(NamespaceEntry entry, int from, int count) {
        for (int i = from; i < from + count; i++) {
            BlockChain chain = BlockChain.of(
                    entry.namespace(), IntStream.range(4 * i, 4 * i + 4).toArray());
            disk.write(
                    new TierBlock(
                            chain.keyHi(0),
                            chain.keyLo(0),
                            0,
                            0,
                            entry.id(),
                            false,
                            0,
                            Math.toIntExact(SHAPE.bytes()),
                            1,
                            0),
                    CONTENT);
        }
    }

    @Test
    void givenNoWeights_whenADiskIsFull_thenTheOldestGo() {
        open(10);
        write(green, 0, 4);
        write(blue, 0, 16);
        disk.recoverInto(tierPort, 0);
        assertThat(green.live).isZero();
        assertThat(blue.live).isEqualTo(10);
    }

    @Test
    void givenSomebodyWithinHisShare_whenAnotherFillsTheDisk_thenThatOnesOwnGo() {
        open(10);
        store.setWeight(green, 1);
        store.setWeight(blue, 1);
        write(green, 0, 4);
        write(blue, 0, 16);
        disk.recoverInto(tierPort, 0);
        assertThat(green.live).isEqualTo(4);
        assertThat(blue.live).isEqualTo(6);
    }

    @Test
    void givenWeights_whenBothFillTheDisk_thenEachHasItsPart() {
        open(16);
        store.setWeight(green, 3);
        store.setWeight(blue, 1);
        write(green, 0, 20);
        write(blue, 0, 20);
        disk.recoverInto(tierPort, 0);
        assertThat(green.live).isEqualTo(12);
        assertThat(blue.live).isEqualTo(4);
    }

    /// A server gives weights while its disks tell what they hold.
    @Test
    void givenBlocksThatWereToldBefore_whenWeightsAreGiven_thenTheyCountAsTheirs() {
        open(20);
        write(green, 0, 4);
        write(blue, 0, 16);
        disk.recoverInto(tierPort, 0);
        store.setWeight(green, 1);
        store.setWeight(blue, 1);
        store.validate();
        disk.reclaim(tierPort, 0, 8, 4);
        assertThat(green.live).isEqualTo(4);
        assertThat(blue.live).isEqualTo(12);
    }

    @Test
    void givenARegionThatIsReclaimed_whenNotAllIsKept_thenThatWithinItsShareIs() {
        open(20);
        store.setWeight(green, 1);
        store.setWeight(blue, 1);
        write(green, 0, 4);
        write(blue, 0, 16);
        disk.recoverInto(tierPort, 0);
        disk.reclaim(tierPort, 0, 8, 4); // all of green's, and four of blue's that were used later
        assertThat(green.live).isEqualTo(4);
        assertThat(blue.live).isEqualTo(12);
    }

    @Test
    void givenMoreTenantsThanOrders_whenTheDiskIsFull_thenTheRestShareOne() {
        open(40);
        for (int i = 0; i < 20; i++) {
            NamespaceEntry each = store.register(Namespace.of("tenant" + i, SHAPE));
            store.setWeight(each, 1);
            write(each, 0, 4);
        }
        disk.recoverInto(tierPort, 0); // the last ones first, which so have orders of their own
        long shared = 0;
        long all = 0;
        for (int i = 0; i < 20; i++) {
            long live = store.register(Namespace.of("tenant" + i, SHAPE)).live;
            all += live;
            if (i < 5) {
                shared += live;
            } else {
                assertThat(live).as("tenant %d", i).isBetween(1L, 2L);
            }
        }
        assertThat(all).isEqualTo(40);
        assertThat(shared).as("of five tenants, and of all without a weight").isBetween(10L, 13L);
    }

    @Test
    void givenMemoryThatIsHeld_whenAWeightComesTooLate_thenNothingChanges() {
        open(100);
        write(green, 0, 4);
        disk.recoverInto(tierPort, 0);
        BlockChain chain = BlockChain.of(green.namespace(), new int[] {900, 901, 902, 903});
        store.seal(store.reserve(green, chain, 0, false).record(), 1);
        assertThatThrownBy(() -> store.setWeight(green, 2)).hasMessageContaining("before it holds anything");
        store.validate();
        assertThat(green.live).isEqualTo(5);
    }
}
