package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.lab.StateReplay.StatePolicy;
import io.kvcache.planner.model.ModelCatalogue;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class StateReplayTest {

    private static final long GIB = 1L << 30;
    private static final ModelProfile QWEN3_NEXT =
            ModelCatalogue.named("qwen3-next-80b-a3b").orElseThrow();
    private static final Map<String, StateReplay> REPLAYS = new ConcurrentHashMap<>();

    /// The store moves memory between sizes in whole slabs, with what lies in them.
    private static final double SLAB_LOSS = .022;

    /// Figures of a prototype that was written apart from this, for 12 MiB a block and 73.7 MiB a state in one
    /// list.
    @ParameterizedTest
    @CsvSource({
        "bound, .044, .070, .243",
        "block, .044, .071, .255",
        "every:2048, .014, .160, .305",
        "ends, .091, .260, .343",
        "ends+branches, .092, .264, .352",
        "ends+every:8192, .081, .251, .354",
        "ends+branches+every:8192, .081, .252, .358",
        "free, .136, .308, .370",
    })
    void givenConversation_whenStatesAreKept_thenTheKnownTokenHits(String states, double a, double b, double c) {
        assertHits("conversation", states, Map.of(64, a, 256, b, 1024, c));
    }

    @ParameterizedTest
    @CsvSource({
        "bound, .074, .201, .332",
        "block, .079, .221, .371",
        "every:2048, .163, .430, .576",
        "ends, .234, .447, .509",
        "ends+branches, .240, .500, .581",
        "ends+every:8192, .228, .523, .620",
        "ends+branches+every:8192, .229, .530, .629",
        "free, .309, .606, .650",
    })
    void givenSynthetic_whenStatesAreKept_thenTheKnownTokenHits(String states, double a, double b, double c) {
        assertHits("synthetic", states, Map.of(64, a, 256, b, 512, c));
    }

    private static void assertHits(String trace, String states, Map<Integer, Double> hitsByGib) {
        StateReplay replay = published(trace);
        hitsByGib.forEach((gib, hits) -> assertThat(
                        replay.run(policy(states), PolicyKind.LRU, gib * GIB).number("tokenHitRatio"))
                .as("%s at %d GiB", states, gib)
                .isBetween(hits - SLAB_LOSS, hits + .005));
    }

    @Test
    void givenAStateInTheMiddle_whenAPromptBranchesLater_thenItResumesAtTheState() {
        StateReplay replay = replay(prompt(1, 2, 3, 4), prompt(1, 2, 3, 9));
        assertThat(hits(replay, "every:1024", 100)).isEqualTo(2);
        assertThat(hits(replay, "ends", 100)).isZero();
        assertThat(hits(replay, "block", 100)).isEqualTo(3);
        assertThat(hits(replay, "free", 100)).isEqualTo(3);
        ResultRow row = replay.run(policy("ends"), PolicyKind.LRU, 512 * 100);
        assertThat(row.number("kvTokenHitRatio")).isEqualTo(3.0 / 9);
        assertThat(row.number("statesPut")).isEqualTo(2);
    }

    @Test
    void givenABranchThatWasSeen_whenItIsTakenAgain_thenItResumesThere() {
        StateReplay replay = replay(prompt(1, 2, 3, 4), prompt(1, 2, 3, 9), prompt(1, 2, 3, 8));
        assertThat(hits(replay, "branches", 100)).isEqualTo(3);
        assertThat(hits(replay, "ends", 100)).isZero();
    }

    @Test
    void givenRoomForLess_whenABlockIsEvicted_thenItsStateGoesToo() {
        // A block takes one, a state two: a thousand prompts of one block each take three thousand.
        StateReplay replay = replay(LongStream.range(0, 2000)
                .mapToObj(each -> prompt(1 + each % 1000))
                .toArray(TraceRequest[]::new));
        assertThat(hits(replay, "ends", 3300)).isEqualTo(1000);
        assertThat(hits(replay, "ends", 2400)).isZero();
        assertThat(hits(replay, "free", 1300)).isEqualTo(1000);
        assertThat(hits(replay, "free", 800)).isZero();
        assertThat(hits(replay, "bound", 3300)).isEqualTo(1000);
        assertThat(hits(replay, "bound", 2400)).isZero();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "end", "ends+ends", "every:0", "every:9999999", "free+ends", "every:512+every:1024", "+"})
    void givenAnUnknownName_whenParsed_thenEmpty(String name) {
        assertThat(StatePolicy.named(name)).isEmpty();
    }

    @Test
    void givenBlocksOfSixteenTokens_whenStatesAreEvery24_thenTheyDoNotFit() {
        assertThat(policy("ends+every:24").fits(16)).isFalse();
        assertThat(policy("ends+every:32").fits(16)).isTrue();
        assertThat(policy("block").fits(16)).isTrue();
    }

    /// Full blocks that prompts resumed behind.
    ///
    /// @param capacity in blocks
    private static long hits(StateReplay replay, String states, long capacity) {
        return Math.round(
                replay.run(policy(states), PolicyKind.LRU, 512 * capacity).number("tokenHitRatio") * totalTokens / 512);
    }

    private static long totalTokens;

    private static StateReplay replay(TraceRequest... requests) {
        Trace trace = new Trace("made", List.of(requests));
        totalTokens = trace.totals().inputTokens();
        return new StateReplay(trace, 1, 1024);
    }

    /// A prompt of these full blocks and half of another.
    private static TraceRequest prompt(long... blocks) {
        long[] ids =
                LongStream.concat(LongStream.of(blocks), LongStream.of(999)).toArray();
        return new TraceRequest(0, 512 * blocks.length + 256, 1, ids);
    }

    private static StatePolicy policy(String name) {
        return StatePolicy.named(name).orElseThrow();
    }

    private static StateReplay published(String name) {
        Optional<Path> file = new TraceFinder().find(name);
        if (file.isEmpty()) {
            System.out.println("states: the " + name + " trace is not here, skipped (set KVCACHE_TRACES)");
        }
        assumeTrue(file.isPresent(), "trace " + name);
        return REPLAYS.computeIfAbsent(name, any -> read(file.orElseThrow()));
    }

    private static StateReplay read(Path file) {
        try {
            TraceReader reader = new TraceReader(MalformedLine.Handling.REFUSE, line -> {});
            return new StateReplay(reader.read(file), QWEN3_NEXT.kvBytesPerToken(), QWEN3_NEXT.stateBytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
