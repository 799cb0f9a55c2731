package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.content;
import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// A policy that wants nothing more, in a store that is full.
final class DeclinedChunksTest {

    private static final int MIB = 1 << 20;
    private static final int FILLING = 80;

    /// A key of LMCache's, without what makes it a half.
    private static final String CHUNK = "model@1@0@1c7e09ab55";

    private final TestKeyspace test = new TestKeyspace(64L << 20, new DecliningPolicies());
    private final Keyspace keyspace = test.keyspace();

    DeclinedChunksTest() {
        for (int i = 0; i < FILLING; i++) {
            assertThat(test.put("fill" + i, content(i, MIB))).isEqualTo(PendingPut.State.WRITING);
        }
    }

    @AfterEach
    void close() {
        test.close();
    }

    private PendingPut.State putAfter(String key, int bytes, String predecessor) {
        try (PendingPut put = keyspace.put(key(key), bytes, key(predecessor))) {
            return put.state();
        }
    }

    @Test
    void givenAKeyThatFollowsAnother_whenPut_thenDeclinedAndCountedAndTheOthersStay() {
        String last = "fill" + (FILLING - 1);
        assertThat(putAfter("next", MIB, last)).isEqualTo(PendingPut.State.DECLINED);
        assertThat(putAfter("after next", MIB, "next")).isEqualTo(PendingPut.State.DECLINED);

        assertThat(test.get("next")).isNull();
        assertThat(test.get(last)).isEqualTo(content(FILLING - 1, MIB));
        assertThat(keyspace.stats().writes().declined()).isEqualTo(2);
        assertThat(keyspace.stats().writes().refused()).isZero();
    }

    @Test
    void givenAKeyThatIsThere_whenPutAgainAfterAnother_thenItIsReplaced() {
        String last = "fill" + (FILLING - 1);
        assertThat(putAfter(last, MIB, "fill" + (FILLING - 2))).isEqualTo(PendingPut.State.WRITING);
    }

    @Test
    void givenAKeyThatFollowsNone_whenPut_thenItIsStored() {
        assertThat(test.put("plain", content(1, MIB))).isEqualTo(PendingPut.State.WRITING);
        assertThat(test.get("plain")).isEqualTo(content(1, MIB));
    }

    @Test
    void givenOneHalfThatIsDeclined_whenTheOtherComes_thenItIsDeclinedToo() {
        assertThat(putAfter(CHUNK + "kv_bytes", MIB, "fill" + (FILLING - 1))).isEqualTo(PendingPut.State.DECLINED);
        assertThat(test.put(CHUNK + "metadata", content(2, 28))).isEqualTo(PendingPut.State.DECLINED);
        assertThat(test.get(CHUNK + "metadata")).isNull();
    }

    /// LRU that admits nothing for which another has to go.
    private static final class DecliningPolicies implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "declining";
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            EvictionPolicy lru = PolicyKind.LRU.create(records, state);
            return (EvictionPolicy) Proxy.newProxyInstance(
                    EvictionPolicy.class.getClassLoader(),
                    new Class<?>[] {EvictionPolicy.class},
                    (_, called, arguments) -> {
                        if (called.getName().equals("admits")) {
                            return false;
                        }
                        try {
                            return called.invoke(lru, arguments);
                        } catch (InvocationTargetException thrown) {
                            throw thrown.getCause();
                        }
                    });
        }
    }
}
