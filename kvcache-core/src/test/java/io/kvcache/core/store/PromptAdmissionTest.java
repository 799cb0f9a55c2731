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
import io.kvcache.core.tree.RecordHandle;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Admission by value learns from earlier prompts of the same kind, and not from single blocks.
final class PromptAdmissionTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final int SHORT = 4;
    private static final int LONG = 32;
    private static final int PROMPTS = 20;

    private final HostStore store =
            new HostStore(new HostStoreConfig(4 * SlabPool.MIN_BYTES, 4000, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry entry = store.register(SPACE);
    private int prompts;

    @BeforeEach
    void open() {
        assertThat(tierPort.addDisk(1 << 28)).isZero();
        tierPort.configureAdmission(AdmissionKind.VALUE, 1 << 28, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private BlockChain prompt(int blocks) {
        int[] tokens = new int[SPACE.blockTokens() * blocks];
        Arrays.fill(tokens, ++prompts);
        return BlockChain.of(SPACE, tokens);
    }

    private void put(BlockChain chain, int from) {
        for (int index = from; index < chain.length(); index++) {
            PutReservation putReservation = store.reserve(entry, chain, index, false);
            assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
            store.seal(putReservation.record(), index);
        }
    }

    private void use(BlockChain chain) {
        store.lookup().unpin(RecordHandle.record(store.lookup().pinDeepest(chain)));
    }

    private long admittedOf(Runnable puts) {
        long before = tierPort.stats().admitted();
        puts.run();
        return tierPort.stats().admitted() - before;
    }

    @Test
    void givenShortPromptsThatReturnAndLongOnesThatDoNot_whenMoreArePut_thenTheShortAloneAreWritten() {
        for (int i = 0; i < PROMPTS; i++) {
            BlockChain returns = prompt(SHORT);
            put(returns, 0);
            use(returns);
            put(prompt(LONG), 0);
        }
        assertThat(admittedOf(() -> put(prompt(SHORT), 0))).isEqualTo(SHORT);
        assertThat(admittedOf(() -> put(prompt(LONG), 0))).isZero();
    }

    @Test
    void givenPromptsThatGoOnAndEndThere_whenOneGoesOn_thenWhatIsNewIsNotWritten() {
        for (int i = 0; i < PROMPTS; i++) {
            BlockChain whole = prompt(SHORT + LONG);
            put(whole.prefix(SHORT), 0);
            use(whole.prefix(SHORT));
            put(whole, SHORT);
        }
        BlockChain next = prompt(SHORT + LONG);
        put(next.prefix(SHORT), 0);
        use(next.prefix(SHORT));
        assertThat(admittedOf(() -> put(next, SHORT))).isZero();
    }
}
