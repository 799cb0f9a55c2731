package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Without an engine on the class path; what is imported with one is tested in engines/cli.
final class TraceImportCommandTest {

    @Test
    void givenNoTokenizerOnTheClassPath_whenImported_thenTheErrorSaysWhatIsMissing(@TempDir Path folder) {
        Path trace = folder.resolve("trace.jsonl");
        CommandRunner.CommandResult commandResult =
                CommandRunner.run("trace", "import", "log.jsonl", "--tokenizer", "none", "--out", trace.toString());
        assertThat(commandResult.exitCode()).isEqualTo(1);
        assertThat(commandResult.err()).contains("trace import needs a tokenizer", "kvcache-engines-cli");
        assertThat(trace).doesNotExist();
    }
}
