package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.content;
import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.miss.MissLog.Reason;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("slow")
final class ObjectKeyTest {

    private static final int MIB = 1 << 20;

    /// A key of LMCache's, without what makes it a half.
    private static final String CHUNK = "model@1@0@1c7e09ab55";

    private final TestKeyspace test = TestKeyspace.small();
    private final Keyspace keyspace = test.keyspace();

    @AfterEach
    void close() {
        test.close();
    }

    @Test
    void givenBothHalves_whenOneIsEvicted_thenTheOtherIsNotFoundEither() {
        for (int i = 0; i < 100; i++) {
            test.put(CHUNK + i + "kv_bytes", content(i, MIB));
            test.put(CHUNK + i + "metadata", content(i, 28));
        }

        int whole = 0;
        for (int i = 0; i < 100; i++) {
            boolean metadata = test.get(CHUNK + i + "metadata") != null;
            boolean bytes = test.get(CHUNK + i + "kv_bytes") != null;
            assertThat(metadata).as("x%d", i).isEqualTo(bytes);
            whole += metadata ? 1 : 0;
        }
        assertThat(whole).isBetween(20, 62);
    }

    /// The object classes hold whole slabs; with few slabs, they took the last one from each other with every put.
    @ParameterizedTest
    @CsvSource({"32, 1500", "48, 1500", "48, 4000", "64, 1500", "64, 4000", "64, 4500", "96, 1500", "96, 4500"})
    void givenLittleMemory_whenChunksAreStored_thenAllThatFitAreKept(int hostMib, int chunkKib) {
        try (TestKeyspace small = new TestKeyspace((long) hostMib * MIB)) {
            for (int i = 0; i < 7; i++) {
                small.put(CHUNK + i + "kv_bytes", content(i, chunkKib << 10));
                small.put(CHUNK + i + "metadata", content(i, 28));
            }
            for (int i = 0; i < 7; i++) {
                assertThat(small.get(CHUNK + i + "metadata")).as("x%d", i).isEqualTo(content(i, 28));
                assertThat(small.get(CHUNK + i + "kv_bytes")).as("x%d", i).isEqualTo(content(i, chunkKib << 10));
            }
        }
    }

    @Test
    void givenBothHalves_whenOneIsDeleted_thenTheOtherIsGone() {
        test.put(CHUNK + ":kv_bytes", content(1, 100));
        test.put(CHUNK + ":metadata", content(2, 28));

        keyspace.delete(key(CHUNK + ":kv_bytes"));

        assertThat(keyspace.exists(key(CHUNK + ":metadata"))).isFalse();
        assertThat(keyspace.stats().reads().of(Reason.OTHER_HALF)).isEqualTo(1);
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
        test.put(CHUNK + "metadata", content(2, 28));
        List<PinnedValue> held = new ArrayList<>();
        for (int i = 0; held.size() == i; i++) {
            if (test.put("fill" + i, content(i, MIB)) == PendingPut.State.WRITING) {
                held.add(Objects.requireNonNull(keyspace.get(key("fill" + i))));
            }
        }

        assertThat(test.put(CHUNK + "kv_bytes", content(1, MIB))).isEqualTo(PendingPut.State.REJECTED);
        assertThat(test.get(CHUNK + "metadata")).isNull();
        held.forEach(PinnedValue::close);
        assertThat(test.put(CHUNK + "metadata", content(2, 28))).isEqualTo(PendingPut.State.REJECTED);
        assertThat(test.put(CHUNK + "kv_bytes", content(1, MIB))).isEqualTo(PendingPut.State.WRITING);
        assertThat(test.put(CHUNK + "metadata", content(2, 28))).isEqualTo(PendingPut.State.WRITING);
    }
}
