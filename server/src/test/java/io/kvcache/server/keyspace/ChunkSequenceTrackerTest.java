package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What is told from the order of a connection's requests. Digests stand for chunks: `a000000000`,
/// `a000000001` and so on are one sequence.
final class ChunkSequenceTrackerTest {

    private final TestKeyspace values = TestKeyspace.small();
    private final ChunkOrder chunkOrder = new ChunkOrder();
    private final List<String> followed = new ArrayList<>();
    private final ChunkSequenceTracker run = newRun();

    private ChunkSequenceTracker newRun() {
        return new ChunkSequenceTracker(
                values.keyspace(),
                chunkOrder,
                (key, after) -> followed.add(text(key) + " after " + text(after)),
                null,
                null);
    }

    /// A thousand bytes take as long to read as a chunk to compute.
    private ChunkSequenceTracker advised(DelayedDiskStore store) {
        RecomputeEstimator terms = new RecomputeEstimator(
                PrefillCost.ofTokenRate(10_000), 10, Duration.ofSeconds(1), bytes -> bytes * 1e3);
        return new ChunkSequenceTracker(store.keyspace(), chunkOrder, (key, after) -> {}, null, terms);
    }

    @AfterEach
    void close() {
        values.close();
    }

    private static @Nullable String text(byte @Nullable [] key) {
        return key == null ? null : new String(key, StandardCharsets.ISO_8859_1);
    }

    private static String chunk(char sequence, int number) {
        return chunk(0, sequence, number);
    }

    private static String chunk(int worker, char sequence, int number) {
        return "vllm@model@4@" + worker + "@" + sequence + "%09d".formatted(number);
    }

    private static void lookUp(ChunkSequenceTracker run, char sequence, int here) {
        for (int i = 0; i < here; i++) {
            run.onLookup(key(chunk(sequence, i)), true);
        }
        run.onLookup(key(chunk(sequence, here)), false);
    }

    private @Nullable String writes(String key) {
        return text(run.onWrite(key(key)));
    }

    @Test
    void givenALookupThatFindsSome_whenTheRestIsWritten_thenEachIsAfterTheOneBefore() {
        lookUp(run, 'a', 2);
        run.onRead(key(chunk('a', 0)), true);
        run.onRead(key(chunk('a', 1)), true);

        assertThat(writes(chunk('a', 2))).isEqualTo(chunk('a', 1));
        assertThat(writes(chunk('a', 3))).isEqualTo(chunk('a', 2));
        assertThat(writes(chunk('a', 4))).isEqualTo(chunk('a', 3));
    }

    @Test
    void givenWritesOfOneSequence_whenThoseOfAnotherFollowAtOnce_thenItBeginsAnew() {
        lookUp(run, 'a', 0);
        lookUp(run, 'b', 0);
        assertThat(writes(chunk('a', 0))).isNull();
        assertThat(writes(chunk('a', 1))).isEqualTo(chunk('a', 0));
        assertThat(writes(chunk('b', 0))).isNull();
        assertThat(writes(chunk('b', 1))).isEqualTo(chunk('b', 0));
    }

    @Test
    void givenTheLookupsOfOneWorker_whenAnotherWrites_thenItsKeysAreInTheSameOrder() {
        lookUp(run, 'a', 1);
        ChunkSequenceTracker other = newRun();
        assertThat(text(other.onWrite(key(chunk(3, 'a', 1))))).isEqualTo(chunk(3, 'a', 0));
        assertThat(text(other.onWrite(key(chunk(3, 'a', 2))))).isEqualTo(chunk(3, 'a', 1));
    }

    @Test
    void givenWritesOfWhichNobodyKnowsTheBeginning_whenTheyFollowEachOther_thenNothingIsTold() {
        assertThat(writes(chunk('a', 0))).isNull();
        assertThat(writes(chunk('b', 0))).isNull();
        assertThat(writes(chunk('c', 0))).isNull();
    }

    @Test
    void givenTwoFullLookupsInARow_whenTheBorderWasTakenForALink_thenItIsTakenBackWhenSeenAgain() {
        run.onLookup(key(chunk('a', 0)), true);
        run.onLookup(key(chunk('a', 1)), true);
        run.onLookup(key(chunk('b', 0)), true);
        assertThat(followed).contains(chunk('b', 0) + " after " + chunk('a', 1));

        run.onRead(key(chunk('b', 0)), true);
        run.onLookup(key(chunk('c', 0)), true);
        run.onLookup(key(chunk('b', 0)), true);
        assertThat(followed).contains(chunk('b', 0) + " after null");
    }

    @Test
    void givenALookupThatBeginsInTheMiddle_whenTheChunkIsKnown_thenItStaysWhereItIs() {
        lookUp(run, 'a', 3);
        run.onRead(key(chunk('a', 0)), true);
        run.onLookup(key(chunk('a', 2)), true);
        run.onLookup(key(chunk('a', 3)), false);

        assertThat(writes(chunk('a', 3))).isEqualTo(chunk('a', 2));
        assertThat(chunkOrder.predecessorOf("a000000002")).isEqualTo("a000000001");
    }

    @ParameterizedTest
    @ValueSource(strings = {"key:000000000001", "user@example", "a@b@c", "vllm@model@1@0@short", "@@@"})
    void givenKeysThatAreNotLmcaches_whenAskedForInOrder_thenNothingIsTold(String other) {
        run.onLookup(key(chunk('a', 0)), true);
        run.onLookup(key(other), true);
        assertThat(writes(other)).isNull();
        assertThat(ChunkKey.of(key(other))).isNull();
    }

    @ParameterizedTest
    @CsvSource({
        "vllm@model@4@0@1c7e09ab55,1c7e09ab55",
        "model@4@0@-1c7e09ab55@bfloat16@tag%value,1c7e09ab55",
        "model@04000400@00a0b0c0d0e0f0a0,00a0b0c0d0e0f0a0",
        "vllm@model@4@0@1c7e09ab55metadata,1c7e09ab55",
        "vllm@model@4@0@1c7e09ab55:kv_bytes,1c7e09ab55"
    })
    void givenAKeyOfAnyVersion_whenReadApart_thenItsDigestIsFoundAndCanBeAnother(String text, String digest) {
        ChunkKey chunk = ChunkKey.of(key(text));
        assertThat(chunk).isNotNull();
        assertThat(chunk.digest()).isEqualTo(digest);
        assertThat(text(chunk.withDigest("77"))).isEqualTo(text.replace(digest, "77"));
    }

    @Test
    void givenBothHalves_whenWritten_thenEachIsAfterTheSameHalfOfTheOneBefore() {
        for (String half : List.of("metadata", "kv_bytes")) {
            run.onLookup(key(chunk('a', 0) + half), true);
        }
        run.onLookup(key(chunk('a', 1) + "metadata"), false);
        assertThat(writes(chunk('a', 1) + "metadata")).isEqualTo(chunk('a', 0) + "metadata");
        assertThat(writes(chunk('a', 1) + "kv_bytes")).isEqualTo(chunk('a', 0) + "kv_bytes");
        assertThat(writes(chunk('a', 2) + "kv_bytes")).isEqualTo(chunk('a', 1) + "kv_bytes");
    }

    /// What all this is for, with the keyspace and the store below it.
    @Test
    void givenSequencesThatFillTheStore_whenMoreCome_thenEachStillBeginsWithItsFirstChunk() {
        ChunkSequenceTracker real = values.keyspace().sequenceTracker(null);
        byte[] value = new byte[900 << 10];
        for (char sequence = 'a'; sequence <= 'f'; sequence++) {
            real.onLookup(key(chunk(sequence, 0)), false);
            for (int i = 0; i < 20; i++) {
                byte[] name = key(chunk(sequence, i));
                try (PendingPut put = values.keyspace().put(name, value.length, real.onWrite(name))) {
                    TestKeyspace.fill(put, value);
                    put.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
                }
            }
        }
        int found = 0;
        for (char sequence = 'a'; sequence <= 'f'; sequence++) {
            boolean before = true;
            for (int i = 0; i < 20; i++) {
                boolean here = values.get(chunk(sequence, i)) != null;
                assertThat(before || !here)
                        .as("%s%d without the one before", sequence, i)
                        .isTrue();
                before = here;
                found += here ? 1 : 0;
            }
        }
        assertThat(found).isBetween(20, 119);
    }

    @Test
    void givenAChunkThatIsComputedSooner_whenLookedUpAgain_thenTheAnswerIsTheSame() {
        try (DelayedDiskStore store = new DelayedDiskStore()) {
            store.put(chunk('a', 0), "v".repeat(5000));
            store.put(chunk('b', 0), "v".repeat(500));
            ChunkSequenceTracker advised = advised(store);
            for (int i = 0; i < 3; i++) {
                assertThat(advised.onLookup(key(chunk('a', 0)), true)).isFalse();
            }
            assertThat(store.keyspace().stats().cheaperComputed()).isEqualTo(3);
            for (int i = 0; i < 3; i++) {
                assertThat(advised.onLookup(key(chunk('b', 0)), true)).isTrue();
            }
        }
    }

    @Test
    void givenHalves_whenOneIsLookedUp_thenWhatReadingBothTakesCounts() {
        String base = "model@04000400@a00000001@bfloat16";
        try (DelayedDiskStore store = new DelayedDiskStore()) {
            store.put(base + "metadata", "m".repeat(20));
            store.put(base + "kv_bytes", "v".repeat(5000));
            ChunkSequenceTracker advised = advised(store);
            assertThat(advised.onLookup(key(base + "metadata"), true)).isFalse();
            assertThat(advised.onLookup(key(base + "kv_bytes"), true)).isFalse();
            assertThat(advised.onLookup(key("user:1"), true)).isTrue();
        }
    }

    /// What is remembered of digests must not take what clients like.
    @Test
    void givenAFieldThatIsLongerThanAnyDigest_whenLookedAt_thenItIsNone() {
        String longest = "a".repeat(128);
        for (String sign : List.of("", "-")) {
            ChunkKey chunk = ChunkKey.of(key("vllm@model@4@0@" + sign + longest));
            assertThat(chunk).isNotNull().extracting(ChunkKey::digest).isEqualTo(longest);
            assertThat(ChunkKey.of(key("vllm@model@4@0@" + sign + longest + "a")))
                    .isNull();
        }
        ChunkKey beside = ChunkKey.of(key("vllm@" + longest + "a@4@0@a00000001"));
        assertThat(beside).isNotNull().extracting(ChunkKey::digest).isEqualTo("a00000001");
    }
}
