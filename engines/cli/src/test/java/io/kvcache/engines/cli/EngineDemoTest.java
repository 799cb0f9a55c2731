package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.cli.TextEngine.JlamaTextEngine;
import io.kvcache.engines.cli.TextEngine.LlamaTextEngine;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.llamacpp.LlamaOptions;
import io.kvcache.engines.llamacpp.NativeRequirements;
import io.kvcache.engines.llamacpp.RandomGguf;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

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

    @Test
    void givenWhatIsForTheOtherEngine_whenTheDemoIsAsked_thenItSaysForWhich() {
        CommandRunner.Run model =
                CommandRunner.run("engines", "demo", "--engine", "llamacpp", "--model", folder.toString());
        assertThat(model.exitCode()).isEqualTo(2);
        assertThat(model.err()).contains("--model is for --engine jlama");
        CommandRunner.Run library =
                CommandRunner.run("engines", "demo", "--engine", "jlama", "--library", folder.toString());
        assertThat(library.exitCode()).isEqualTo(2);
        assertThat(library.err()).contains("--library is for --engine llamacpp");
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
