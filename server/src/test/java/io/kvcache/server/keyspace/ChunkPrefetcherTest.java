package io.kvcache.server.keyspace;

import static io.kvcache.server.keyspace.TestKeyspace.key;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ChunkSequenceTracker.ChunkPrefetcher;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Which values are expected while a sequence is read chunk by chunk.
final class ChunkPrefetcherTest {

    private final TestKeyspace values = TestKeyspace.small();
    private final List<String> expected = new ArrayList<>();
    private final ChunkPrefetcher chunkPrefetcher =
            new ChunkPrefetcher(key -> expected.add(new String(key, StandardCharsets.ISO_8859_1)));
    private final ChunkSequenceTracker run =
            new ChunkSequenceTracker(values.keyspace(), new ChunkOrder(), (key, after) -> {}, chunkPrefetcher, null);

    @AfterEach
    void close() {
        values.close();
    }

    private static String chunk(char sequence, int number) {
        return "vllm@model@4@0@" + sequence + "%09d".formatted(number);
    }

    private void lookUp(char sequence, int here) {
        for (int i = 0; i < here; i++) {
            run.onLookup(key(chunk(sequence, i)), true);
        }
        run.onLookup(key(chunk(sequence, here)), false);
    }

    private List<String> whenRead(String key) {
        expected.clear();
        run.onRead(key(key), true);
        return expected;
    }

    @Test
    void givenALookUp_whenTheFirstIsRead_thenThoseBehindItAreExpected() {
        lookUp('a', 4);
        assertThat(whenRead(chunk('a', 0))).containsExactly(chunk('a', 1), chunk('a', 2), chunk('a', 3));
        assertThat(whenRead(chunk('a', 1))).containsExactly(chunk('a', 2), chunk('a', 3));
        assertThat(whenRead(chunk('a', 3))).isEmpty();
    }

    @Test
    void givenALongSequence_whenRead_thenAFewAreExpectedAtATime() {
        lookUp('a', 40);
        assertThat(whenRead(chunk('a', 5)))
                .hasSize(ChunkPrefetcher.PREFETCH_CHUNKS)
                .startsWith(chunk('a', 6))
                .endsWith(chunk('a', 5 + ChunkPrefetcher.PREFETCH_CHUNKS));
    }

    @Test
    void givenASequenceThatWasReadOnce_whenReadAgainWithoutALookUp_thenItIsExpected() {
        for (int i = 0; i < 3; i++) {
            assertThat(whenRead(chunk('a', i))).isEmpty();
        }
        run.onLookup(key(chunk('b', 0)), false);
        assertThat(whenRead(chunk('a', 0))).containsExactly(chunk('a', 1), chunk('a', 2));
    }

    @Test
    void givenTwoSequencesThatPart_whenRead_thenTheOneLookedUpLastIsExpected() {
        lookUp('a', 3);
        run.onLookup(key(chunk('a', 0)), true);
        run.onLookup(key(chunk('b', 1)), true);
        run.onLookup(key(chunk('b', 2)), false);
        assertThat(whenRead(chunk('a', 0))).containsExactly(chunk('b', 1));
    }

    @Test
    void givenHalves_whenOneIsRead_thenBothOfTheNextAreExpected() {
        String stem = "model@04000400@";
        run.onLookup(key(stem + "a00000001@bfloat16metadata"), true);
        run.onLookup(key(stem + "a00000002@bfloat16metadata"), true);
        assertThat(whenRead(stem + "a00000001@bfloat16metadata"))
                .containsExactly(stem + "a00000002@bfloat16metadata", stem + "a00000002@bfloat16kv_bytes");
    }

    @Test
    void givenAChunkThatIsNotHere_whenRead_thenNothingIsExpected() {
        lookUp('a', 3);
        expected.clear();
        run.onRead(key(chunk('a', 0)), false);
        assertThat(expected).isEmpty();
    }

    @Test
    void givenDigestsInACircle_whenRead_thenItEnds() {
        run.onLookup(key(chunk('a', 1)), true);
        run.onLookup(key(chunk('a', 2)), true);
        run.onLookup(key(chunk('a', 1)), true);
        assertThat(whenRead(chunk('a', 1))).hasSizeLessThanOrEqualTo(ChunkPrefetcher.PREFETCH_CHUNKS);
    }

    @Test
    void givenOtherKeys_whenRead_thenNothingIsExpected() {
        assertThat(whenRead("user:1")).isEmpty();
        assertThat(whenRead("user:2")).isEmpty();
        assertThat(whenRead("user:1")).isEmpty();
    }
}
