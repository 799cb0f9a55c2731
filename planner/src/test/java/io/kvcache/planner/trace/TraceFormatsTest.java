package io.kvcache.planner.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceReader.TraceFormatException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TraceFormatsTest {

    private static final String FIRST = chat(7, -1, "0.5", 20, "3, 9");

    @TempDir
    private Path folder;

    @Test
    void givenQwenLines_whenRead_thenSixteenTokensABlockAndSecondsAsMillis() throws IOException {
        Trace trace = read(FIRST);
        assertThat(trace.blockTokens()).isEqualTo(16);
        TraceRequest request = trace.requests().getFirst();
        assertThat(request.timestampMillis()).isEqualTo(500);
        assertThat(request.inputTokens()).isEqualTo(20);
        assertThat(request.outputTokens()).isEqualTo(4);
        assertThat(request.hashIds()).containsExactly(3, 9);
    }

    @Test
    void givenQwenChatsThatGoOn_whenRead_thenOneSessionInTheOrderOfArrival() throws IOException {
        Trace trace = read(
                FIRST,
                chat(9, 8, "61.114", 40, "3, 4, 5"),
                chat(8, 7, "30.25", 33, "3, 4, 6"),
                chat(10, -1, "2", 16, "3"),
                chat(12, 11, "90", 16, "1"));
        assertThat(trace.requests())
                .extracting(TraceRequest::timestampMillis)
                .containsExactly(500L, 2000L, 30_250L, 61_114L, 90_000L);
        assertThat(trace.requests()).extracting(TraceRequest::session).containsExactly(7L, 10L, 7L, 8L, 11L);
    }

    @Test
    void givenQwenLineWithoutThePartialBlock_whenRead_thenItsFullBlocksCount() throws IOException {
        assertThat(read(chat(1, -1, "0", 20, "3")).requests().getFirst().hashIds())
                .containsExactly(3);
    }

    @Test
    void givenTokenIds_whenRead_thenBlocksAreEqualWhereAllTokensBeforeAre() throws IOException {
        String shared = tokens(0, 32);
        Trace trace = read(
                "{\"tokens\": [" + shared + ", 77], \"timestamp\": 5, \"output_length\": 6}",
                "{\"tokens\": [" + shared + ", 78], \"timestamp\": 6}",
                "{\"tokens\": [" + tokens(16, 48) + "], \"timestamp\": 7}");
        assertThat(trace.blockTokens()).isEqualTo(16);
        assertThat(trace.requests().get(0).hashIds()).containsExactly(0, 1, 2);
        assertThat(trace.requests().get(1).hashIds()).containsExactly(0, 1, 3);
        assertThat(trace.requests().get(2).hashIds()).containsExactly(4, 5);
        assertThat(trace.requests().get(0).inputTokens()).isEqualTo(33);
        assertThat(trace.requests().get(0).outputTokens()).isEqualTo(6);
        assertThat(trace.requests().get(1).outputTokens()).isZero();
    }

    @Test
    void givenTokenIdsWithoutTimes_whenRead_thenInTheOrderOfTheFile() throws IOException {
        Trace trace = read("{\"tokens\": [1]}", "{\"tokens\": [2, 3]}");
        assertThat(trace.requests()).extracting(TraceRequest::inputTokens).containsExactly(1, 2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"chat_id\":1}|parent_chat_id is missing",
                "{\"chat_id\":-1,\"parent_chat_id\":-1}|chat_id is -1",
                "{\"chat_id\":1,\"parent_chat_id\":-2}|parent_chat_id is -2",
                "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":\"9\"}|timestamp is \"9\"",
                "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":1e99}|timestamp is 1",
                "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":1,\"input_length\":1.5}|input_length is 1.5",
                "{\"tokens\":[1]}|chat_id is missing",
            })
    void givenMalformedQwenLine_whenRead_thenTheErrorNamesLineAndField(String line, String reason) {
        assertRefused(reason, FIRST, line);
    }

    @Test
    void givenQwenLineWithTheWrongNumberOfIds_whenRead_thenTheErrorSaysHowMany() {
        assertRefused(
                "number of hash_ids is 3, must be 1 or 2 for an input_length of 20",
                FIRST,
                chat(1, -1, "1", 20, "1,2,3"));
        assertRefused("number of hash_ids is 1, must be 2 for an input_length of 32", FIRST, chat(1, -1, "1", 32, "1"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"tokens\":[]}|tokens is empty",
                "{\"tokens\":7}|tokens is not an array",
                "{\"tokens\":[-4]}|token is -4",
                "{\"tokens\":[1.5]}|token is 1.5",
                "{\"tokens\":[1],\"output_length\":-1}|output_length is -1",
                "{\"hash_ids\":[1]}|tokens is missing",
            })
    void givenMalformedTokenLine_whenRead_thenTheErrorNamesLineAndField(String line, String reason) {
        assertRefused(reason, "{\"tokens\":[1]}", line);
    }

    @Test
    void givenNoKnownFormat_whenRead_thenTheErrorNamesTheFieldsThatAreThereAndThoseThatMustBe() {
        assertThatThrownBy(() -> read("{\"prompt\": \"Hello\", \"at\": 1}"))
                .isInstanceOf(TraceFormatException.class)
                .hasMessageContaining("some.jsonl:1: ")
                .hasMessageContaining("[prompt, at]")
                .hasMessageContaining("hash_ids (Mooncake)")
                .hasMessageContaining("Qwen-Bailian")
                .hasMessageContaining("tokens");
    }

    private void assertRefused(String reason, String... lines) {
        assertThatThrownBy(() -> read(lines))
                .isInstanceOf(TraceFormatException.class)
                .hasMessageContaining("some.jsonl:" + lines.length + ": ")
                .hasMessageContaining(reason);
    }

    private Trace read(String... lines) throws IOException {
        Path file = Files.writeString(folder.resolve("some.jsonl"), String.join("\n", lines));
        return new TraceReader(MalformedLine.Handling.REFUSE, line -> {}).read(file);
    }

    private static String chat(int chat, int parent, String seconds, int tokens, String ids) {
        return "{\"chat_id\": " + chat + ", \"parent_chat_id\": " + parent + ", \"timestamp\": " + seconds
                + ", \"input_length\": " + tokens + ", \"output_length\": 4, \"type\": \"text\", \"turn\": 1"
                + ", \"hash_ids\": [" + ids + "]}";
    }

    private static String tokens(int from, int to) {
        return IntStream.range(from, to).mapToObj(String::valueOf).collect(Collectors.joining(", "));
    }
}
