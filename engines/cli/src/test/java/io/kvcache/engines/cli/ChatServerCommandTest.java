package io.kvcache.engines.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.llamacpp.NativeRequirements;
import io.kvcache.engines.llamacpp.RandomGguf;
import java.io.BufferedReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Timeout(600)
@Tag("slow")
final class ChatServerCommandTest {

    private static final Pattern ANSWERS =
            Pattern.compile("KVCache answers at (http://127\\.0\\.0\\.1:\\d+/v1) with model by (.*)");

    @TempDir
    private Path folder = Path.of("");

    private static JsonNode ask(String url, String prompt) throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/completions"))
                    .timeout(Duration.ofSeconds(200))
                    .POST(HttpRequest.BodyPublishers.ofString(
                            "{\"prompt\":\"" + prompt + "\",\"max_tokens\":3,\"temperature\":0}"))
                    .build();
            return JsonMapper.shared()
                    .readTree(client.send(request, HttpResponse.BodyHandlers.ofString())
                            .body());
        }
    }

    private static String metrics(String url) throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                            HttpRequest.newBuilder(URI.create(url))
                                    .timeout(Duration.ofSeconds(200))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body();
        }
    }

    @Test
    void givenAChatServer_whenAskedUntilItsBlocksAreThere_thenItSaysSoAndEndsWithZero() throws Exception {
        Path model = RandomLlama.SMALL.write(folder.resolve("model"));
        serveAndStop("Jlama 0.8.4 ", "--model", model.toString());
    }

    @Test
    void givenAChatServerOverLlamaCpp_whenAskedTwice_thenItSaysSoAndEndsWithZero() throws Exception {
        NativeRequirements.assume();
        Path model = RandomGguf.SMALL.write(folder.resolve("model"));
        serveAndStop("llama.cpp b4916 ", "--engine", "llamacpp", "--model", model.toString(), "--context", "512");
    }

    private void serveAndStop(String engine, String... options) throws Exception {
        List<String> words = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "--add-modules",
                "jdk.incubator.vector",
                "-cp",
                System.getProperty("java.class.path"),
                Kvcache.class.getName(),
                "chat-server",
                "--port",
                "0",
                "--host-bytes",
                "64MiB",
                "--disk",
                folder.resolve("disk") + ":640MiB"));
        words.addAll(List.of(options));
        Process process = new ProcessBuilder(words)
                .redirectError(folder.resolve("errors").toFile())
                .start();
        try (BufferedReader said = process.inputReader(UTF_8)) {
            Matcher answers = ANSWERS.matcher(String.valueOf(said.readLine()));
            assertThat(answers.matches()).isTrue();
            assertThat(answers.group(2)).startsWith(engine);
            String prompt = "all work and no play ".repeat(5);
            JsonNode first = ask(answers.group(1), prompt);
            assertThat(first.at("/usage/prompt_tokens_details/cached_tokens").intValue())
                    .isZero();
            JsonNode later = ask(answers.group(1), prompt);
            assertThat(later.at("/usage/prompt_tokens_details/cached_tokens").intValue())
                    .isEqualTo(96);
            assertThat(later.at("/choices/0/text")).isEqualTo(first.at("/choices/0/text"));

            assertThat(metrics(answers.group(1).replace("/v1", "/metrics")))
                    .contains("kv_engine_tokens_total{engine=\"model\",kind=\"saved\"} 96.0")
                    .contains("kv_chat_requests_total{outcome=\"ok\",path=\"/v1/completions\"} 2.0")
                    .contains("cache_puts_total{", "kv_disk_alive");

            assertThat(process.toHandle().destroy()).isTrue();
            assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).isZero();
            assertThat(said.readAllAsString()).isEqualTo("KVCache stopped\n");
        } finally {
            process.destroyForcibly();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "--port,70000,0 to 65535",
        "--verify,2,0 to 1",
        "--block-tokens,0,1 to 65536",
        "--disk,here,DIR:SIZE",
        "--host-bytes,much,KiB",
        "--engine,none,'jlama, llamacpp'",
    })
    void givenAnOptionOutOfRange_whenStarted_thenTheMessageSaysWhatIsAllowed(String option, String value, String part) {
        CommandRunner.Run run = CommandRunner.run("chat-server", option, value);
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains(part);
    }
}
