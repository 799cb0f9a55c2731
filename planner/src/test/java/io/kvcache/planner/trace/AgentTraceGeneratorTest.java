package io.kvcache.planner.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.planner.trace.TraceReader.MalformedLine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("slow")
final class AgentTraceGeneratorTest {

    private static final Trace TRACE = load("agents:3");

    private static Trace load(String name) {
        try {
            return TraceSource.parse(name).load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}));
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static Map<Long, List<TraceRequest>> sessions() {
        Map<Long, List<TraceRequest>> sessions = new TreeMap<>();
        TRACE.requests()
                .forEach(request -> sessions.computeIfAbsent(request.session(), any -> new ArrayList<>())
                        .add(request));
        return sessions;
    }

    @Test
    void givenOneSeed_whenGeneratedTwice_thenTheSameTrace() {
        assertThat(load("agents:3").requests())
                .usingElementComparator(TraceGeneratorTest.BY_EVERY_FIELD)
                .containsExactlyElementsOf(TRACE.requests());
        assertThat(load("agents:4").totals()).isNotEqualTo(TRACE.totals());
        assertThat(load("agents").totals()).isEqualTo(load("agents:1").totals());
    }

    @Test
    void givenASession_whenItGoesOn_thenEachPromptBeginsWithTheFullBlocksOfTheOneBefore() {
        sessions().values().forEach(requests -> {
            for (int i = 1; i < requests.size(); i++) {
                TraceRequest before = requests.get(i - 1);
                int full = before.inputTokens() / Trace.BLOCK_TOKENS;
                assertThat(Arrays.copyOf(requests.get(i).hashIds(), full))
                        .isEqualTo(Arrays.copyOf(before.hashIds(), full));
            }
        });
    }

    @Test
    void givenTheTrace_whenGapsAreMeasured_thenHalfAreBelowSeventeenSecondsAndAnAnswerOrSo() {
        List<Long> gaps = new ArrayList<>();
        sessions().values().forEach(requests -> {
            for (int i = 1; i < requests.size(); i++) {
                gaps.add(requests.get(i).timestampMillis()
                        - requests.get(i - 1).timestampMillis()
                        - 20L * requests.get(i - 1).outputTokens());
            }
        });
        gaps.sort(null);
        assertThat(gaps.get(gaps.size() / 2)).isBetween(15_000L, 24_000L);
        assertThat(gaps.get(gaps.size() * 9 / 10)).isBetween(90_000L, 200_000L);
    }

    @Test
    void givenTheTrace_whenSessionsAreCounted_thenSoManyAreAtWorkAtOnceAndContextsAreLong() {
        Map<Long, Long> ends = new HashMap<>();
        TRACE.requests().forEach(request -> ends.put(request.session(), request.timestampMillis()));
        TraceRequest middle = TRACE.requests().get(TRACE.requests().size() / 2);
        Set<Long> begun = new HashSet<>();
        TRACE.requests().stream()
                .takeWhile(request -> request.timestampMillis() < middle.timestampMillis())
                .map(TraceRequest::session)
                .forEach(begun::add);
        long atWork = begun.stream()
                .filter(session -> ends.getOrDefault(session, 0L) > middle.timestampMillis())
                .count();
        assertThat(atWork).isBetween(38L, 50L); // of 44, some between two sessions, some ended that come back
        assertThat(TRACE.requests()).allMatch(request -> request.inputTokens() <= 200_000);
        assertThat(TRACE.requests()).anyMatch(request -> request.inputTokens() > 190_000);
    }

    @Test
    void givenChatsBeside_whenMixed_thenBothAreThereOnOneClockAndShareNoBlock() {
        Trace mixed = load("mixed:2:requests=3000");
        assertThat(mixed.requests()).extracting(TraceRequest::timestampMillis).isSorted();
        long agents = mixed.requests().stream()
                .filter(request -> request.session() % 2 == 0)
                .count();
        assertThat(agents).isBetween(500L, 3000L);
        assertThat(mixed.requests().size() - agents).isGreaterThan(500);
        Map<Long, Long> sides = new HashMap<>();
        for (TraceRequest request : mixed.requests()) {
            for (long id : request.hashIds()) {
                long side = request.session() % 2;
                assertThat(sides.computeIfAbsent(id, any -> side)).isEqualTo(side);
            }
        }
    }

    @Test
    void givenSettings_whenParsed_thenTheTraceFollowsThem() {
        Trace small = load("agents:9:sessions=5:requests=700:context=30000");
        assertThat(small.requests()).hasSize(700);
        assertThat(small.requests()).allMatch(request -> request.inputTokens() <= 30_000);
        assertThat(load("agents:requests=50").requests()).hasSize(50);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "agents:1:speed=3 | 'speed=3' is not a setting (NAME=N) of a trace of agents; settings: requests (1 to 1000000)",
                "agents:1: | '' is not a setting (NAME=N) of a trace of agents; settings: requests",
                "agents:1:tool=3::human=9 | '' is not a setting (NAME=N) of a trace of agents; settings: requests",
                "agents:tool=3:tool=4 | tool of a trace of agents is given twice, as 3 and 'tool=4'; settings: requests",
                "agents: | 'agents:' is not a trace",
                "agents:1:sessions=0 | sessions of a trace of agents is 0, must be from 1 to 10000; settings: requests",
                "agents:1:sessions=x | 'sessions=x' of a trace of agents needs a whole number",
                "mixed:one | 'mixed:one' is not a trace",
            })
    void givenASettingThatIsWrong_whenParsed_thenTheErrorNamesItAndWhatMayBe(String name, String message) {
        assertThatThrownBy(() -> TraceSource.parse(name))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }
}
