package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.jlama.RandomLlama;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class TraceImportCommandTest {

    @TempDir
    private Path folder;

    private CommandRunner.Run run(String... more) throws IOException {
        Path model = RandomLlama.SMALL.writeTokenizer(folder.resolve("model"));
        Path log = Files.write(
                folder.resolve("log.jsonl"),
                List.of(
                        "{\"messages\": [{\"role\": \"user\", \"content\": \"" + "secret words ".repeat(100) + "\"}]}",
                        "{\"messages\": 7}",
                        "{\"prompt\": \"" + "secret words ".repeat(100) + "\"}"));
        String[] arguments = {
            "trace", "import", log.toString(), "--tokenizer", model.toString(), "--out", trace().toString()
        };
        return CommandRunner.run(Stream.of(arguments, more).flatMap(Stream::of).toArray(String[]::new));
    }

    private Path trace() {
        return folder.resolve("trace.jsonl");
    }

    @Test
    void givenALog_whenImported_thenTheTraceCanBeReplayedAndHoldsNoWords() throws Exception {
        CommandRunner.Run run = run();
        assertThat(run.err()).contains("log.jsonl:2: messages must be an array").doesNotContain("log.jsonl:1");
        assertThat(run.out()).contains("2 requests, 1 lines skipped").contains("blocks of 512");
        assertThat(run.exitCode()).isZero();
        assertThat(Files.readString(trace())).doesNotContain("secret");
        CommandRunner.Run replay =
                CommandRunner.run("replay", "--trace", trace().toString(), "--policy", "lru", "--blocks", "100");
        assertThat(replay.exitCode()).isZero();
    }

    @Test
    void givenALineThatIsRefused_whenImported_thenItFailsAndWritesNothing() throws Exception {
        CommandRunner.Run run = run("--malformed", "refuse");
        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err()).contains("log.jsonl:2: ");
        assertThat(trace()).doesNotExist();
    }

    @Test
    void givenAPlaceThatCannotBeWritten_whenImported_thenUsageErrorBeforeAnythingIsRead() throws Exception {
        Path nowhere = folder.resolve("nowhere").resolve("trace.jsonl");
        Path log = folder.resolve("log.jsonl");
        for (Path out : List.of(nowhere, folder, log)) {
            CommandRunner.Run run = CommandRunner.run(
                    "trace", "import", log.toString(), "--tokenizer", "none", "--out", out.toString());
            assertThat(run.exitCode()).isEqualTo(2);
            assertThat(run.err()).contains("--out is '" + out, "must be");
        }
        assertThat(log).doesNotExist();
    }

    @Test
    void givenAnUnknownSizeOfBlocks_whenImported_thenUsageErrorSaysWhichThereAre() throws Exception {
        CommandRunner.Run run = run("--block-tokens", "64");
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains("64", "512 or 16");
    }
}
