package io.kvcache.planner.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceReader.TraceFormatException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TraceReaderTest {

    private static final String GOOD =
            "{\"timestamp\": 27, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [3, 9]}";

    @TempDir
    private Path folder;

    private final List<MalformedLine> skipped = new ArrayList<>();

    @Test
    void givenGoodLines_whenRead_thenRequestsInOrder() throws IOException {
        Trace trace = skipping(GOOD + "\n" + GOOD.replace("27", "28") + "\n");
        assertThat(trace.name()).isEqualTo("some");
        assertThat(trace.requests()).extracting(TraceRequest::timestampMillis).containsExactly(27L, 28L);
        TraceRequest first = trace.requests().getFirst();
        assertThat(first.inputTokens()).isEqualTo(600);
        assertThat(first.outputTokens()).isEqualTo(5);
        assertThat(first.hashIds()).containsExactly(3, 9);
        assertThat(trace.totals()).isEqualTo(new Trace.Totals(512, 2, 4, 2, 1200, 10));
    }

    @Test
    void givenCrlfBlankLinesAndNoLastNewline_whenRead_thenNothingIsLost() throws IOException {
        Trace trace = skipping("\r\n" + GOOD + "\r\n\r\n   \n" + GOOD);
        assertThat(trace.requests()).hasSize(2);
        assertThat(skipped).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"timestamp\": 1|not JSON",
                "[1]|is not a JSON object",
                "{} {}|not JSON",
                "{\"timestamp\":1,\"input_length\":9,\"hash_ids\":[1]}|output_length is missing",
                "{\"timestamp\":1,\"input_length\":9,\"output_length\":1}|hash_ids is missing",
                "{\"timestamp\":1,\"input_length\":9,\"output_length\":1,\"hash_ids\":7}|hash_ids is not an array",
                "{\"timestamp\":1,\"input_length\":9,\"output_length\":1,\"hash_ids\":[-4]}|hash id is -4",
                "{\"timestamp\":1,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1.5]}|hash id is 1.5",
                "{\"timestamp\":1,\"input_length\":600,\"output_length\":1,\"hash_ids\":[]}|number of hash_ids is 0,"
                        + " must be 1 or 2",
                "{\"timestamp\":1,\"input_length\":600,\"output_length\":1,\"hash_ids\":[1,2,3]}|number of hash_ids"
                        + " is 3, must be 1 or 2",
                "{\"timestamp\":1,\"input_length\":0,\"output_length\":1,\"hash_ids\":[]}|input_length is 0",
                "{\"timestamp\":1,\"input_length\":\"9\",\"output_length\":1,\"hash_ids\":[1]}|input_length is \"9\"",
                "{\"timestamp\":1,\"input_length\":9000000000,\"output_length\":1,\"hash_ids\":[1]}|input_length is",
                "{\"timestamp\":-1,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1]}|timestamp is -1",
            })
    void givenMalformedLine_whenRead_thenNumberAndReasonAreReported(String line, String reason) throws IOException {
        Trace trace = skipping(GOOD + "\n" + line + "\n" + GOOD + "\n");
        assertThat(trace.requests()).hasSize(2);
        assertThat(skipped).hasSize(1);
        assertThat(skipped.getFirst().number()).isEqualTo(2);
        assertThat(skipped.getFirst().reason()).contains(reason);
        assertThatThrownBy(() -> read(GOOD + "\n" + line, MalformedLine.Handling.REFUSE))
                .isInstanceOf(TraceFormatException.class)
                .hasMessageContaining("some.jsonl:2: ")
                .hasMessageContaining(reason);
    }

    @Test
    void givenNoRequestAtAll_whenRead_thenRefusedEvenWhenSkipping() {
        assertThatThrownBy(() -> skipping("\n\n")).hasMessageContaining("holds no request");
        assertThatThrownBy(() -> skipping("")).hasMessageContaining("holds no request");
        assertThatThrownBy(() -> skipping("nonsense\n")).hasMessageContaining("holds no request");
    }

    @Test
    void givenBinaryFile_whenRead_thenTheErrorSaysSo() throws IOException {
        Path file = Files.write(folder.resolve("some.jsonl"), new byte[] {'{', (byte) 0xC3, (byte) 0x28, '\n'});
        assertThatThrownBy(() -> new TraceReader(MalformedLine.Handling.SKIP, skipped::add).read(file))
                .isInstanceOf(TraceFormatException.class)
                .hasMessageContaining("is not UTF-8 text; a trace has one JSON object a line")
                .hasMessageNotContaining("line 0");
    }

    @Test
    void givenACompressedFile_whenRead_thenTheErrorSaysSo() throws IOException {
        Path file = Files.write(folder.resolve("some.jsonl.gz"), new byte[] {0x1f, (byte) 0x8b, 8, 0, 0});
        assertThatThrownBy(() -> new TraceReader(MalformedLine.Handling.SKIP, skipped::add).read(file))
                .isInstanceOf(TraceFormatException.class)
                .hasMessageContaining("is compressed by gzip");
    }

    @Test
    void givenNoFile_whenRead_thenTheUsualException() {
        assertThatThrownBy(() ->
                        new TraceReader(MalformedLine.Handling.SKIP, skipped::add).read(folder.resolve("absent.jsonl")))
                .isInstanceOf(NoSuchFileException.class);
    }

    private Trace skipping(String text) throws IOException {
        return read(text, MalformedLine.Handling.SKIP);
    }

    private Trace read(String text, MalformedLine.Handling handling) throws IOException {
        Path file = Files.writeString(folder.resolve("some.jsonl"), text);
        return new TraceReader(handling, skipped::add).read(file);
    }
}
