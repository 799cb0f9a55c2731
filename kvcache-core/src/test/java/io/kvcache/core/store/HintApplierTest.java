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
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// How long hints about long chains keep others waiting.
final class HintApplierTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final int BLOCKS = 10_000;
    private static final int RECORDS = 1024;

    private final CountingLock lock = new CountingLock();
    private final HostStore store = new HostStore(
            new HostStoreConfig(SlabPool.MIN_BYTES, RECORDS, PolicyKind.IMPORTANCE, 64), ArenaMemory.source(), lock);
    private final BlockChain chain = BlockChain.of(SPACE, new int[BLOCKS * 16]);

    private static final class CountingLock extends ReentrantLock {
        private static final long serialVersionUID = 1;

        private int turns;

        @Override
        public void lock() {
            super.lock();
            turns++;
        }
    }

    @AfterEach
    void close() {
        store.close();
    }

    private HintApplier hintApplier() {
        store.register(SPACE);
        lock.turns = 0;
        return store.hints();
    }

    @Test
    void givenALongChain_whenExpected_thenOthersGetTheLockInBetween() {
        assertThat(hintApplier().expect(chain)).isTrue();
        assertThat(lock.turns).isEqualTo(Math.ceilDiv(BLOCKS, HintApplier.BATCH));
    }

    @Test
    void givenALongChain_whenSaidOf_thenOthersGetTheLockInBetween() {
        HintApplier hints = hintApplier();
        assertThat(hints.label(chain, 10, 3)).as("nothing is here").isZero();
        int once = 1; // for an array of what is said, made outside
        assertThat(lock.turns).isEqualTo(once + Math.ceilDiv(BLOCKS - 10, HintApplier.BATCH));
        lock.turns = 0;
        assertThat(hints.setWeights(chain, 10, new int[1000])).isZero();
        assertThat(hints.release(chain, 10)).isZero();
        assertThat(lock.turns)
                .isEqualTo(Math.ceilDiv(BLOCKS - 10, HintApplier.BATCH) + Math.ceilDiv(1000, HintApplier.BATCH));
    }

    @Test
    void givenALongChain_whenItsTailIsForgotten_thenOthersGetTheLockInBetween() {
        hintApplier().demote(chain, 10);
        assertThat(lock.turns).isEqualTo(Math.ceilDiv(BLOCKS - 10, HintApplier.BATCH));
    }
}
