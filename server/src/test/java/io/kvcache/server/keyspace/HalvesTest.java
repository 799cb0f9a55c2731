package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.content;
import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class HalvesTest {

    private static final int MIB = 1 << 20;

    private final TestKeyspace test = TestKeyspace.small();
    private final Keyspace keyspace = test.keyspace();

    @AfterEach
    void close() {
        test.close();
    }

    @Test
    void givenBothHalves_whenOneIsEvicted_thenTheOtherIsNotFoundEither() {
        for (int i = 0; i < 100; i++) {
            test.put("x" + i + "kv_bytes", content(i, MIB));
            test.put("x" + i + "metadata", content(i, 28));
        }

        int whole = 0;
        for (int i = 0; i < 100; i++) {
            boolean metadata = test.get("x" + i + "metadata") != null;
            boolean bytes = test.get("x" + i + "kv_bytes") != null;
            assertThat(metadata).as("x%d", i).isEqualTo(bytes);
            whole += metadata ? 1 : 0;
        }
        assertThat(whole).isBetween(20, 62);
    }

    @Test
    void givenBothHalves_whenOneIsDeleted_thenTheOtherIsGone() {
        test.put("x:kv_bytes", content(1, 100));
        test.put("x:metadata", content(2, 28));

        keyspace.delete(key("x:kv_bytes"));

        assertThat(keyspace.exists(key("x:metadata"))).isFalse();
        assertThat(keyspace.stats().reads().halved()).isEqualTo(1);
    }

    @Test
    void givenAKeyThatOnlyLooksLikeAHalf_whenItIsAlone_thenItIsAKeyLikeAnyOther() {
        test.put("some metadata", content(1, 28));
        test.put("metadata", content(2, 28));

        assertThat(test.get("some metadata")).isEqualTo(content(1, 28));
        assertThat(test.get("metadata")).isEqualTo(content(2, 28));
    }

    @Test
    void givenNoRoomForOneHalf_whenTheOtherComes_thenItIsRefusedToo() {
        test.put("xmetadata", content(2, 28));
        List<Value> held = new ArrayList<>();
        for (int i = 0; held.size() == i; i++) {
            if (test.put("fill" + i, content(i, MIB)) == PendingPut.State.WRITING) {
                held.add(Objects.requireNonNull(keyspace.get(key("fill" + i))));
            }
        }

        assertThat(test.put("xkv_bytes", content(1, MIB))).isEqualTo(PendingPut.State.REFUSED);
        assertThat(test.get("xmetadata")).isNull();
        held.forEach(Value::close);
        assertThat(test.put("xmetadata", content(2, 28))).isEqualTo(PendingPut.State.REFUSED);
        assertThat(test.put("xkv_bytes", content(1, MIB))).isEqualTo(PendingPut.State.WRITING);
        assertThat(test.put("xmetadata", content(2, 28))).isEqualTo(PendingPut.State.WRITING);
    }
}
