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
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Blocks recovered from a disk do not affect the odds of reuse of blocks put from now on.
final class RecoveredReuseTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final int RESTORED = 60;
    private static final int PUT = 300;

    private final HostStore store =
            new HostStore(new HostStoreConfig(4 * SlabPool.MIN_BYTES, 1000, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry entry = store.register(SPACE);

    @BeforeEach
    void open() {
        assertThat(tierPort.addDisk(1 << 24)).isZero();
        tierPort.configureAdmission(AdmissionKind.VALUE, 1 << 24, 1 << 20, AdmissionKind.DEFAULT_GAIN);
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private static BlockChain chain(int number) {
        return BlockChain.of(SPACE, new int[] {number, number, number, number});
    }

    private void tell(int number) {
        BlockChain chain = chain(number);
        int bytes = entry.blockBytes();
        TierBlock block = new TierBlock(chain.keyHi(0), chain.keyLo(0), 0, 0, entry.id(), false, 0, bytes, number, 0);
        assertThat(tierPort.onRecovered(0, block, number + 1)).isTrue();
    }

    private void load(int number) {
        LoadBatch loadBatch = store.beginLoads(chain(number), 0, 1, 0);
        assertThat(loadBatch.isStarted(0)).isTrue();
        assertThat(tierPort.nextRead(0, loadBatch.record(0), true, 0)).isNotNull();
        tierPort.onRead(loadBatch.record(0), number, true, false);
    }

    private void put(int number) {
        store.seal(store.reserve(entry, chain(number), 0, false).record(), number);
    }

    @Test
    void givenAllThatADiskHadIsUsed_whenBlocksArePutThatNobodyUses_thenInTheEndNoneIsWritten() {
        for (int number = 0; number < RESTORED; number++) {
            tell(number);
        }
        tierPort.endRecovery();
        for (int number = 0; number < RESTORED; number++) {
            load(number);
        }
        for (int number = RESTORED; number < RESTORED + PUT; number++) {
            put(number);
        }
        long admitted = tierPort.stats().admitted();
        put(RESTORED + PUT);
        assertThat(tierPort.stats().admitted()).isEqualTo(admitted).isLessThan(PUT / 2);
    }
}
