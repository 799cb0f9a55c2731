package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.cli.TextEngine.JlamaTextEngine;
import io.kvcache.engines.cli.TextEngine.LlamaTextEngine;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.llamacpp.LlamaOptions;
import io.kvcache.engines.llamacpp.NativeRequirements;
import io.kvcache.engines.llamacpp.RandomGguf;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(900)
@Tag("slow")
final class EngineDemoTest {

    @TempDir
    private Path folder;

    @Test
    void givenAModel_whenTheDemoRuns_thenEachRequestHasARowAndAllAnswersAreEqual() throws Exception {
        Path model = RandomLlama.SMALL.write(folder);
        CommandRunner.Run answer =
                CommandRunner.run("engines", "demo", "--engine", "jlama", "--model", model.toString());
        assertThat(answer.exitCode()).as(answer.out() + answer.err()).isZero();
        assertThat(answer.out().lines().filter(line -> line.matches("(question|turn) \\d+ .*")))
                .hasSize(26);
        assertThat(answer.out()).contains("All answers are of the same tokens", "question 20", "turn 6");
    }

    @Test
    @Tag("nightly")
    void givenLlamaCpp_whenTheDemoRuns_thenAllAnswersAreEqualAndSomethingWasThere() throws Exception {
        NativeRequirements.assume();
        // Threads of llama.cpp's spin while they wait for each other, which takes long on a busy machine.
        LlamaOptions one = LlamaOptions.defaults().withThreads(1);
        try (TextEngine engine = LlamaTextEngine.random(RandomGguf.SMALL, one, Optional.empty())) {
            EngineDemo.Result result = new EngineDemo(engine, _ -> {}).run();
            assertThat(result.rows()).hasSize(26).allMatch(EngineDemo.Row::equal);
            assertThat(result.isPassed()).isTrue();
            assertThat(result.model()).contains("random-llama.gguf, llama.cpp b4916");
        }
    }

    @ParameterizedTest
    @CsvSource({"demo,--library", "demo,--context", "chat-server,--library", "chat-server,--context"})
    void givenAnOptionOfLlamaCpp_whenJlamaIsAsked_thenItSaysForWhich(String command, String option) {
        List<String> words = new ArrayList<>(command.equals("demo") ? List.of("engines", "demo") : List.of(command));
        words.addAll(List.of(option, "5"));
        CommandRunner.Run run = CommandRunner.run(words.toArray(String[]::new));
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err())
                .contains("kvcache " + String.join(" ", words.subList(0, words.size() - 2)) + ": ")
                .contains(option + " is for --engine llamacpp");
    }

    @Test
    void givenAContextOutOfRange_whenTheDemoIsAsked_thenItSaysWhatIsAllowed() {
        CommandRunner.Run run = CommandRunner.run("engines", "demo", "--engine", "llamacpp", "--context", "0");
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains("--context is 0, must be: 1 to 1048576");
    }

    @Test
    void givenAGgufFile_whenTheDemoRuns_thenAllAnswersAreEqual() throws Exception {
        NativeRequirements.assume();
        RandomGguf tiny = new RandomGguf(64, 128, 1, 2, 1, 4096, 7);
        Path model = tiny.write(folder.resolve("tiny.gguf"));
        CommandRunner.Run run = CommandRunner.run(
                "engines", "demo", "--engine", "llamacpp", "--model", model.toString(), "--context", "2048");
        assertThat(run.exitCode()).as(run.out() + run.err()).isZero();
        assertThat(run.out()).contains("All answers are of the same tokens", "tiny.gguf, llama.cpp b4916");
    }

    @Test
    void givenAGgufFileThatTheDemoCannotUse_whenItRuns_thenTheErrorSaysWhy() throws Exception {
        NativeRequirements.assume();
        RandomGguf tiny = new RandomGguf(64, 128, 1, 2, 1, 4096, 7);
        String mute = tiny.write(folder.resolve("mute.gguf"), Map.of("tokenizer.ggml.model", "no_vocab"))
                .toString();
        String[] demo = {"engines", "demo", "--engine", "llamacpp", "--model", mute};
        CommandRunner.Run noText = CommandRunner.run(demo);
        assertThat(noText.exitCode()).isEqualTo(1);
        assertThat(noText.err()).contains("mute.gguf has no tokenizer").doesNotContain("Exception");

        String model = tiny.write(folder.resolve("tiny.gguf")).toString();
        CommandRunner.Run noRoom =
                CommandRunner.run("engines", "demo", "--engine", "llamacpp", "--model", model, "--context", "64");
        assertThat(noRoom.exitCode()).isEqualTo(2);
        assertThat(noRoom.err()).contains("tokens; this model takes 1 to 63");
        CommandRunner.Run noBlock = CommandRunner.run(
                "chat-server",
                "--engine",
                "llamacpp",
                "--model",
                model,
                "--block-tokens",
                "1",
                "--host-bytes",
                "64MiB");
        assertThat(noBlock.exitCode()).isEqualTo(2);
        assertThat(noBlock.err()).contains("blockTokens is 1").contains("2 and more");
    }

    @Test
    void givenWhatIsNoModelOfLlamaCpp_whenTheDemoRuns_thenItNamesIt() throws Exception {
        NativeRequirements.assume();
        Path text = Files.writeString(folder.resolve("text"), "not a model");
        for (Path wrong : List.of(folder, text, folder.resolve("missing.gguf"))) {
            CommandRunner.Run run =
                    CommandRunner.run("engines", "demo", "--engine", "llamacpp", "--model", wrong.toString());
            assertThat(run.exitCode()).isEqualTo(1);
            assertThat(run.err()).contains(wrong.toString(), "GGUF file").doesNotContain("Exception");
        }
    }

    @Test
    void givenNoLibraryThere_whenTheDemoRuns_thenItNamesTheFile() {
        String nothing = folder.resolve("libllama.so").toString();
        CommandRunner.Run answer = CommandRunner.run("engines", "demo", "--engine", "llamacpp", "--library", nothing);
        assertThat(answer.exitCode()).isEqualTo(1);
        assertThat(answer.err()).contains(nothing);
    }

    @Test
    void givenAnotherEngine_whenTheDemoIsAskedForIt_thenItSaysWhichThereAre() {
        CommandRunner.Run answer = CommandRunner.run("engines", "demo", "--engine", "none");
        assertThat(answer.exitCode()).isEqualTo(2);
        assertThat(answer.err()).contains("--engine is 'none', must be: jlama");
    }

    @Test
    void givenNoModelThere_whenTheDemoRuns_thenItNamesTheFolder() {
        CommandRunner.Run answer =
                CommandRunner.run("engines", "demo", "--engine", "jlama", "--model", folder.toString());
        assertThat(answer.exitCode()).isEqualTo(1);
        assertThat(answer.err()).contains(folder.toString(), "config.json");
    }

    @Test
    void givenPairs_whenMeasured_thenTheSharedBlocksCameFromTheStoreAndNothingElseDid() throws Exception {
        RandomLlama tiny = new RandomLlama(128, 256, 2, 2, 1, 2048, 7);
        List<EngineSuite.Pair> pairs;
        try (JlamaTextEngine served = JlamaTextEngine.random(tiny)) {
            pairs = EngineSuite.measure(served.model(), 2);
        }
        assertThat(pairs).hasSize(2).allSatisfy(pair -> {
            assertThat(pair.hit().cachedTokens()).isEqualTo(992);
            assertThat(pair.plain().cachedTokens()).isZero();
            assertThat(pair.cold().cachedTokens()).isZero();
            assertThat(pair.replacedNanos()).isPositive();
            assertThat(pair.importNanos()).isPositive();
            assertThat(pair.coldNanos()).isGreaterThan(pair.coldStoreNanos());
        });
    }

    @Test
    void givenTheQuestions_whenListed_thenEachHasItsBudget() {
        CommandRunner.Run run = CommandRunner.run("engines", "bench", "--list");
        assertThat(run.exitCode()).isZero();
        assertThat(run.out()).contains("engines: ", "jlama-first-token", "jlama-cold", "ratio <= 0.03");
        CommandRunner.Run other = CommandRunner.run("engines", "bench", "--filter", "nothing");
        assertThat(other.exitCode()).isEqualTo(2);
        assertThat(other.err()).contains("kvcache engines bench: --filter is 'nothing'", "jlama-import");
    }
}
