package io.kvcache.bench.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.cli.Kvcache;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.llamacpp.ModelOptions;
import io.kvcache.engines.llamacpp.NativeNeeds;
import io.kvcache.engines.llamacpp.RandomGguf;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

@Timeout(900)
final class EngineDemoTest {

    @TempDir
    private Path folder;

    private record Answer(int exit, String out, String errors) {}

    private static Answer run(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter errors = new StringWriter();
        CommandLine line =
                Kvcache.commandLine().setOut(new PrintWriter(out, true)).setErr(new PrintWriter(errors, true));
        return new Answer(line.execute(arguments), out.toString(), errors.toString());
    }

    @Test
    void givenAModel_whenTheDemoRuns_thenEachRequestHasARowAndAllAnswersAreEqual() throws Exception {
        Path model = RandomLlama.SMALL.write(folder);
        Answer answer = run("demo", "--engine", "jlama", "--model", model.toString());
        assertThat(answer.exit()).as(answer.out() + answer.errors()).isZero();
        assertThat(answer.out().lines().filter(line -> line.matches("(question|turn) \\d+ .*")))
                .hasSize(26);
        assertThat(answer.out()).contains("All answers are of the same tokens", "question 20", "turn 6");
    }

    @Test
    void givenLlamaCpp_whenTheDemoRuns_thenAllAnswersAreEqualAndSomethingWasThere() throws Exception {
        NativeNeeds.assume();
        // Threads of llama.cpp's spin while they wait for each other, which takes long on a busy machine.
        ModelOptions one = ModelOptions.defaults().withThreads(1);
        try (TextEngine engine = LlamaEngine.random(RandomGguf.SMALL, one, Optional.empty())) {
            EngineDemo.Result result = new EngineDemo(engine, _ -> {}).run();
            assertThat(result.rows()).hasSize(26).allMatch(EngineDemo.Row::equal);
            assertThat(result.passed()).isTrue();
            assertThat(result.model()).contains("random-llama.gguf, llama.cpp b4916");
        }
    }

    @Test
    void givenWhatIsForTheOtherEngine_whenTheDemoIsAsked_thenItSaysForWhich() {
        Answer model = run("demo", "--engine", "llamacpp", "--model", folder.toString());
        assertThat(model.exit()).isEqualTo(2);
        assertThat(model.errors()).contains("--model is for --engine jlama");
        Answer library = run("demo", "--engine", "jlama", "--library", folder.toString());
        assertThat(library.exit()).isEqualTo(2);
        assertThat(library.errors()).contains("--library is for --engine llamacpp");
    }

    @Test
    void givenNoLibraryThere_whenTheDemoRuns_thenItNamesTheFile() {
        String nothing = folder.resolve("libllama.so").toString();
        Answer answer = run("demo", "--engine", "llamacpp", "--library", nothing);
        assertThat(answer.exit()).isEqualTo(1);
        assertThat(answer.errors()).contains(nothing);
    }

    @Test
    void givenAnotherEngine_whenTheDemoIsAskedForIt_thenItSaysWhichThereAre() {
        Answer answer = run("demo", "--engine", "none");
        assertThat(answer.exit()).isEqualTo(2);
        assertThat(answer.errors()).contains("--engine is 'none', must be: jlama");
    }

    @Test
    void givenNoModelThere_whenTheDemoRuns_thenItNamesTheFolder() {
        Answer answer = run("demo", "--engine", "jlama", "--model", folder.toString());
        assertThat(answer.exit()).isEqualTo(1);
        assertThat(answer.errors()).contains(folder.toString(), "config.json");
    }

    @Test
    void givenPairs_whenMeasured_thenTheSharedBlocksCameFromTheStoreAndNothingElseDid() throws Exception {
        RandomLlama tiny = new RandomLlama(128, 256, 2, 2, 1, 2048, 7);
        List<EnginePairs.Pair> pairs;
        try (ServedModel served = ServedModel.random(tiny)) {
            pairs = EnginePairs.measure(served.model(), 2);
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
}
