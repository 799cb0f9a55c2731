package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.RecordHandle;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Blocks that a ranked disk keeps: those that return again and again, though more blocks come in between than the
/// disk holds.
final class RankedDiskTest {

    /// Blocks of 1 MiB, so that host memory holds 64.
    private static final BlockShape SHAPE = BlockShape.kv(16, 8, 128, 16, Dtype.BF16);
    private static final Namespace SPACE = Namespace.of("m", SHAPE);
    private static final int ON_DISK = 128;
    private static final int HOT = 30;
    private static final int COLD_BETWEEN = 200;
    private static final int ROUNDS = 60;
    private static final int FIRST_COLD = 1_000;

    /// A store with a disk, driven by one thread.
    private static final class Rig implements AutoCloseable {

        private final HostStore store;
        private final TierPort tierPort;
        private final NamespaceEntry entry;
        private final Map<Integer, TierBlock> written = new HashMap<>();
        private long places;

        Rig(PolicyKind policy, boolean ranked) {
            store = new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 4_000, policy, 64), ArenaMemory.source());
            tierPort = store.tierPort();
            entry = store.register(SPACE);
            assertThat(tierPort.addDisk(ON_DISK * SHAPE.bytes(), ranked)).isZero();
            tierPort.configureAdmission(AdmissionKind.ALWAYS, 32L << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
            tierPort.endRecovery();
        }

        private static BlockChain chain(int number) {
            return BlockChain.of(
                    SPACE, IntStream.range(16 * number, 16 * number + 16).toArray());
        }

        /// Uses a block where it is, or puts it.
        ///
        /// @return whether it was there
        boolean use(int number) {
            BlockChain chain = chain(number);
            if (store.lookup().matchKnown(chain, 0) == 0) {
                put(number, chain);
                return false;
            }
            long handle = store.lookup().pinKey(chain.keyHi(0), chain.keyLo(0));
            if (RecordHandle.isFound(handle)) {
                store.lookup().unpin(RecordHandle.record(handle));
            } else {
                tierPort.onUsed(Objects.requireNonNull(written.get(number)));
            }
            return true;
        }

        private void put(int number, BlockChain chain) {
            PutReservation putReservation = store.reserve(entry, chain, 0, false);
            assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
            store.seal(putReservation.record(), 7);
            for (TierPort.PendingWrite next = tierPort.nextWrite(0); next != null; next = tierPort.nextWrite(0)) {
                written.put(number, next.block());
                tierPort.onWritten(next.record(), 0, ++places);
            }
        }

        /// How often something was there that returns, while new blocks come.
        int hits() {
            int hits = 0;
            int cold = FIRST_COLD;
            for (int round = 0; round < ROUNDS; round++) {
                for (int hot = 0; hot < HOT; hot++) {
                    hits += use(hot) ? 1 : 0;
                }
                for (int i = 0; i < COLD_BETWEEN; i++) {
                    assertThat(use(cold++)).isFalse();
                }
            }
            store.validate();
            return hits;
        }

        @Override
        public void close() {
            store.close();
        }
    }

    private static int hits(PolicyKind policy, boolean ranked) {
        try (Rig rig = new Rig(policy, ranked)) {
            return rig.hits();
        }
    }

    @Test
    void givenBlocksThatReturn_whenMoreComeInBetweenThanThereIsRoomFor_thenTheyStayOnADiskThatIsRanked() {
        int byLastUse = hits(PolicyKind.IMPORTANCE, false);
        int ranked = hits(PolicyKind.IMPORTANCE, true);
        System.out.println("ranked disk: " + ranked + " of " + HOT * ROUNDS + " uses, by last use " + byLastUse);
        assertThat(ranked).isGreaterThan(byLastUse);
    }

    /// A policy without a measure has no say.
    @ParameterizedTest
    @EnumSource(names = {"LRU"})
    void givenAPolicyWithoutAMeasure_whenRanked_thenItGoesByLastUse(PolicyKind policy) {
        assertThat(hits(policy, true)).isEqualTo(hits(policy, false));
    }
}
