package io.kvcache.planner.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.planner.log.LoggedRequest.LoggedPrompt;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceReader.TraceFormatException;
import io.kvcache.planner.trace.TraceRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Each character is a token here.
final class LogImporterTest {

    private static final int BLOCK = 16;

    @TempDir
    private Path folder;

    private final List<String> skipped = new ArrayList<>();

    private static int[] tokens(LoggedPrompt prompt) {
        return switch (prompt) {
            case LoggedPrompt.Text text -> text.text().chars().toArray();
            case LoggedPrompt.Tokens ids -> ids.tokens();
            case LoggedPrompt.Chat chat ->
                chat.turns().stream()
                        .map(loggedMessage -> loggedMessage.role() + ":" + loggedMessage.content() + "\n")
                        .collect(Collectors.joining())
                        .chars()
                        .toArray();
        };
    }

    private LogImporter reading(int salt, int blockTokens, MalformedLine.Handling handling) {
        return new LogImporter(LogImporterTest::tokens, blockTokens, new byte[] {(byte) salt}, handling, skipped::add);
    }

    private Path log(String... lines) throws IOException {
        return Files.write(folder.resolve("log.jsonl"), List.of(lines));
    }

    private LogImporter.ImportResult read(int salt, String... lines) throws IOException {
        LogImporter reading = reading(salt, BLOCK, MalformedLine.Handling.SKIP);
        reading.read(log(lines));
        return reading.finish("log");
    }

    private static String chat(String... words) {
        StringBuilder messages = new StringBuilder();
        for (int i = 0; i < words.length; i++) {
            messages.append(i == 0 ? "" : ", ")
                    .append("{\"role\": \"")
                    .append(i % 2 == 0 ? "user" : "assistant")
                    .append("\", \"content\": \"")
                    .append(words[i])
                    .append("\"}");
        }
        return "\"messages\": [" + messages + "]";
    }

    @Test
    void givenAChatThatGoesOn_whenRead_thenItsBlocksBeginAsThoseBefore() throws Exception {
        String question = "a question of many more than sixteen characters";
        List<TraceRequest> requests = read(
                        1,
                        "{" + chat(question) + ", \"timestamp\": 1700000000}",
                        "{" + chat(question, "an answer", "more") + ", \"timestamp\": 1700000007.5}",
                        "{" + chat("another question") + ", \"timestamp\": 1700000008250}")
                .trace()
                .requests();
        assertThat(requests).extracting(TraceRequest::timestampMillis).containsExactly(0L, 7_500L, 8_250L);
        int full = requests.get(0).inputTokens() / BLOCK;
        for (int i = 0; i < full; i++) {
            assertThat(requests.get(1).hashIds()[i]).isEqualTo(requests.get(0).hashIds()[i]);
        }
        assertThat(requests.get(2).hashIds()).doesNotContain(requests.get(0).hashIds());
        assertThat(skipped).isEmpty();
    }

    @Test
    void givenEqualBlocksBehindOtherOnes_whenRead_thenTheirIdsDiffer() throws Exception {
        String same = "the same sixteen";
        List<TraceRequest> requests = read(
                        1,
                        "{\"prompt\": \"one has sixteen!" + same + "\"}",
                        "{\"prompt\": \"two has sixteen!" + same + "\"}")
                .trace()
                .requests();
        assertThat(requests.get(0).hashIds()).hasSize(2);
        assertThat(requests.get(0).hashIds()[1]).isNotEqualTo(requests.get(1).hashIds()[1]);
    }

    @Test
    void givenAnotherSalt_whenRead_thenAllIdsDiffer() throws Exception {
        String line = "{\"prompt\": \"a text of more than sixteen characters\"}";
        long[] ids = read(1, line).trace().requests().getFirst().hashIds();
        assertThat(read(2, line).trace().requests().getFirst().hashIds()).doesNotContain(ids);
        assertThat(read(1, line).trace().requests().getFirst().hashIds()).isEqualTo(ids);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"prompt\": \"abc\"} | abc",
                "{\"prompt\": [\"abc\"]} | abc",
                "{\"prompt\": [97, 98]} | ab",
                "{\"body\": {\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}} | USER:x\\n",
                "{\"request\": {\"input\": \"x\", \"instructions\": \"y\"}} | SYSTEM:y\\nUSER:x\\n",
                "{\"input\": [{\"role\": \"developer\", \"content\": [{\"type\": \"input_text\", \"text\": \"x\"}]}]} | SYSTEM:x\\n",
                "{\"messages\": [{\"role\": \"tool\", \"content\": \"x\"}], \"tools\": [{\"a\": 1}]} | SYSTEM:[{\"a\":1}]\\nUSER:x\\n",
                "{\"messages\": [{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [1]}]} | ASSISTANT:[1]\\n",
            })
    void givenAFormOfRequest_whenRead_thenItsPromptIsWhatTheModelReads(String line, String text) throws Exception {
        String wanted = text.replace("\\n", "\n");
        LogImporter.ImportResult result =
                read(1, line, "{\"prompt\": \"" + wanted.replace("\"", "\\\"").replace("\n", "\\n") + "\"}");
        assertThat(skipped).isEmpty();
        List<TraceRequest> requests = result.trace().requests();
        assertThat(requests.get(0).hashIds()).isEqualTo(requests.get(1).hashIds());
        assertThat(requests.get(0).inputTokens()).isEqualTo(wanted.length());
    }

    @Test
    void givenAnswersWithAndWithoutTheirUsage_whenRead_thenTheirTokensAreKnown() throws Exception {
        LogImporter.ImportResult result = read(
                1,
                "{\"request\": {\"prompt\": \"abcd\"}, \"response\": {\"created\": 3, \"usage\": {\"prompt_tokens\": 8, \"completion_tokens\": 21}}}",
                "{\"body\": {\"prompt\": \"ab\"}, \"response\": {\"status_code\": 200, \"body\": {\"created\": 5, \"choices\": [{\"message\": {\"content\": \"seven..\"}}]}}}",
                "{\"prompt\": \"ab\"}");
        assertThat(result.trace().requests())
                .extracting(TraceRequest::outputTokens)
                .containsExactly(21, 7, 0);
        assertThat(result.trace().requests())
                .extracting(TraceRequest::timestampMillis)
                .as("who tells no time comes with the one before")
                .containsExactly(0L, 2000L, 2000L);
        assertThat(result.ofLogged()).isEqualTo(0.5);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"prompt\": | not JSON",
                "[1] | not a JSON object",
                "{\"model\": \"m\"} | none of messages, prompt and input",
                "{\"messages\": []} | messages must be an array",
                "{\"messages\": [{\"role\": \"god\"}]} | messages[0].role is \"god\", must be one of system",
                "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]} | messages[0].content[0] is of type \"image_url\"",
                "{\"prompt\": [1, -2]} | prompt[1] is -2, must be a token id",
                "{\"prompt\": [\"secret\", \"words\"]} | prompt[0] is a text, must be a token id",
                "{\"messages\": [{\"role\": \"My secret.\"}]} | messages[0].role is a text of 10 characters, must be one of",
                "{\"prompt\": [\"a\", \"b\"]} | several prompts in one request",
                "{\"prompt\": \"\"} | no token",
                "{\"prompt\": \"a\", \"timestamp\": \"noon\"} | must be a number or a time such as",
                "{\"prompt\": \"a\", \"created\": -1} | created is -1",
            })
    void givenALineThatCannotBeUsed_whenRead_thenItIsNamedWithItsReason(String line, String reason) throws Exception {
        assertThat(read(1, "{\"prompt\": \"good\"}", line).skipped()).isEqualTo(1);
        assertThat(skipped).singleElement().asString().contains("log.jsonl:2: ").contains(reason);
        LogImporter refusing = reading(1, BLOCK, MalformedLine.Handling.REFUSE);
        assertThatThrownBy(() -> refusing.read(folder.resolve("log.jsonl")))
                .isInstanceOf(TraceFormatException.class)
                .hasMessageContaining("log.jsonl:2: ")
                .hasMessageContaining(reason);
    }

    @Test
    void givenNoLineOfUse_whenEnded_thenItSaysSo() throws Exception {
        assertThatThrownBy(() -> read(1, "{}", "[]"))
                .isInstanceOf(TraceFormatException.class)
                .hasMessageContaining("no line holds a request that can be used, of 2");
    }

    @ParameterizedTest
    @CsvSource({"512", "16"})
    void givenATrace_whenWritten_thenTheReaderFindsTheSame(int blockTokens) throws Exception {
        LogImporter reading = reading(1, blockTokens, MalformedLine.Handling.REFUSE);
        String text = "0123456789".repeat(130);
        reading.read(log(
                "{\"prompt\": \"" + text + "\", \"timestamp\": \"2026-01-31T12:00:00Z\"}",
                "{\"prompt\": \"" + text + "more\", \"timestamp\": \"2026-01-31T13:00:01.250+01:00\"}"));
        Trace written = reading.finish("log").trace();
        Path file = folder.resolve("trace.jsonl");
        LogImporter.writeTrace(written, file);
        assertThat(Files.getPosixFilePermissions(file)).hasSize(2);
        Trace read = new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}).read(file);
        assertThat(read.blockTokens()).isEqualTo(blockTokens);
        assertThat(read.totals()).isEqualTo(written.totals());
        for (int i = 0; i < 2; i++) {
            TraceRequest request = read.requests().get(i);
            assertThat(request.timestampMillis()).isEqualTo(i * 1250L);
            assertThat(request.hashIds()).isEqualTo(written.requests().get(i).hashIds());
        }
    }
}
