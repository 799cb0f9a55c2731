package io.kvcache.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.junit.KvCacheServerExtension;
import io.kvcache.spring.TestBlocks;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Applications with Tomcat at a free port, asked as an operator asks them.
final class ActuatorTest {

    @RegisterExtension
    static final KvCacheServerExtension SERVER = KvCacheServerExtension.create();

    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir
    private Path folder;

    private final List<ConfigurableApplicationContext> started = new ArrayList<>();

    @AfterEach
    void stop() {
        started.forEach(ConfigurableApplicationContext::close);
    }

    @AfterAll
    static void disconnect() {
        HTTP.close();
    }

    private ConfigurableApplicationContext start(String... arguments) {
        return start("health,kvcache,prometheus", arguments);
    }

    /// @param exposed endpoints
    private ConfigurableApplicationContext start(String exposed, String[] arguments) {
        List<String> all = new ArrayList<>(List.of(
                "--server.port=0",
                "--management.endpoints.web.exposure.include=" + exposed,
                "--management.endpoint.health.show-details=always",
                "--kvcache.host-bytes=32MB",
                "--kvcache.memory-bytes=16MB",
                "--kvcache.request-timeout=2s"));
        Collections.addAll(all, arguments);
        ConfigurableApplicationContext context = SpringApplication.run(Application.class, all.toArray(String[]::new));
        started.add(context);
        return context;
    }

    private ConfigurableApplicationContext startRemote() {
        return start("--kvcache.addresses=" + SERVER.addresses().transport());
    }

    private static HttpResponse<String> get(ConfigurableApplicationContext context, String page)
            throws IOException, InterruptedException {
        String port = context.getEnvironment().getRequiredProperty("local.server.port");
        URI address = URI.create("http://127.0.0.1:" + port + "/actuator/" + page);
        return HTTP.send(HttpRequest.newBuilder(address).build(), BodyHandlers.ofString());
    }

    private static JsonNode json(ConfigurableApplicationContext context, String page)
            throws IOException, InterruptedException {
        return JSON.readTree(get(context, page).body());
    }

    /// Asks until the answer is as it should be, for 20 s at most.
    private static JsonNode await(ConfigurableApplicationContext context, String page, Predicate<JsonNode> expected)
            throws IOException, InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        JsonNode answer = json(context, page);
        while (!expected.test(answer)) {
            assertThat(System.nanoTime()).as("in time: %s", answer).isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(50);
            answer = json(context, page);
        }
        return answer;
    }

    @Test
    void givenAnEmbeddedCache_whenHealthIsAsked_thenItIsUpWithDetails() throws Exception {
        ConfigurableApplicationContext context = start();
        TestBlocks.put(context.getBean(KvCache.class));
        JsonNode health = json(context, "health").path("components").path("kvcache");
        assertThat(health.path("status").asString()).isEqualTo("UP");
        assertThat(health.path("details").path("mode").asString()).isEqualTo("embedded");
        assertThat(health.path("details").path("blocks").asInt()).isEqualTo(4);
        assertThat(health.path("details").path("bytes").asLong()).isPositive();
        assertThat(health.path("details").path("capacityBytes").asLong()).isEqualTo(32L << 20);
    }

    @Test
    void givenARemoteCache_whenTheServerGoesAndComes_thenHealthIsDownAndUpAgain() throws Exception {
        ConfigurableApplicationContext context = startRemote();
        JsonNode up = json(context, "health/kvcache");
        assertThat(up.path("status").asString()).isEqualTo("UP");
        assertThat(up.path("details").path("addresses").get(0).asString())
                .isEqualTo(SERVER.addresses().transport());

        SERVER.stop();
        JsonNode down = await(
                context,
                "health/kvcache",
                each -> each.path("status").asString().equals("DOWN"));
        assertThat(get(context, "health").statusCode()).isEqualTo(503);
        assertThat(down.path("details").path("mode").asString()).isEqualTo("remote");
        assertThat(down.path("details").path("error").asString())
                .contains(SERVER.addresses().transport());
        assertThat(json(context, "kvcache").path("error").asString())
                .contains(SERVER.addresses().transport());
        assertThat(get(context, "prometheus").statusCode())
                .as("a scrape goes on")
                .isEqualTo(200);

        SERVER.start();
        await(context, "health/kvcache", each -> each.path("status").asString().equals("UP"));
        assertThat(TestBlocks.put(context.getBean(KvCache.class))).isEqualTo(4);
    }

    @Test
    void givenTheEndpoint_whenAsked_thenItShowsStatisticsAndNamespaces() throws Exception {
        ConfigurableApplicationContext context = startRemote();
        KvCache cache = context.getBean(KvCache.class);
        TestBlocks.put(cache);
        TestBlocks.found(cache);
        JsonNode page = json(context, "kvcache");
        assertThat(page.path("mode").asString()).isEqualTo("remote");
        assertThat(page.path("connected").get(0).asString())
                .isEqualTo(SERVER.addresses().transport());
        JsonNode stats = page.path("stats");
        assertThat(stats.path("records").path("live").asInt()).isEqualTo(4);
        assertThat(stats.path("puts").path("reserved").asInt()).isGreaterThanOrEqualTo(4);
        assertThat(stats.path("hitRatio").asDouble()).isEqualTo(1);
        JsonNode space = stats.path("namespaces").get(0);
        assertThat(space.path("name").asString()).isEqualTo("model");
        assertThat(space.path("blocksAsked").asInt()).isEqualTo(4);
        assertThat(space.path("blocksFound").asInt()).isEqualTo(4);
        assertThat(space.path("liveBytes").asLong()).isPositive();
    }

    @Test
    void givenAnEmbeddedCacheWithADisk_whenScraped_thenTheDocumentedMetricsAreThere() throws Exception {
        ConfigurableApplicationContext context =
                start("--kvcache.disks[0].directory=" + folder.resolve("disk"), "--kvcache.disks[0].bytes=256MB");
        TestBlocks.put(context.getBean(KvCache.class));
        get(context, "prometheus"); // a namespace has its meters from the reading after its registration on
        assertThat(get(context, "prometheus").body())
                .contains("kv_memory_capacity_bytes{cache=\"kv\",tier=\"host\"} 3.3554432E7")
                .contains("cache_puts_total{cache=\"kv\",outcome=\"reserved\"} 4.0")
                .contains("cache_size{cache=\"kv\",namespace=\"model\",tenant=\"default\"} 4.0")
                .contains("cache_evictions_total{cache=\"kv\",cause=\"evicted\"} 0.0")
                .contains("kv_disk_serving{cache=\"kv\",disk=\"0\"} 1.0")
                .contains("kv_policy_follows_lru{cache=\"kv\"}")
                .contains("kv_hints_total{cache=\"kv\"");
    }

    @Test
    void givenARemoteCache_whenScraped_thenTheServersMetricsAreThere() throws Exception {
        ConfigurableApplicationContext context = startRemote();
        TestBlocks.put(context.getBean(KvCache.class));
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        String size = "cache_size{cache=\"kv\",namespace=\"model\",tenant=\"default\"} 4.0";
        while (!get(context, "prometheus").body().contains(size)) { // asks the server once a second
            assertThat(System.nanoTime()).as("in time").isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(100);
        }
        assertThat(get(context, "prometheus").body())
                .contains("kv_memory_capacity_bytes{cache=\"kv\",tier=\"host\"} 6.7108864E7")
                .contains("cache_puts_total{cache=\"kv\",outcome=\"reserved\"}")
                .doesNotContain("kv_disk_serving");
    }

    @Test
    void givenTheEndpointIsNotExposed_whenAsked_thenItIsNotFound() throws Exception {
        ConfigurableApplicationContext context =
                start("health", new String[] {"--management.health.kvcache.enabled=false"});
        assertThat(get(context, "kvcache").statusCode()).isEqualTo(404);
        assertThat(get(context, "health/kvcache").statusCode()).isEqualTo(404);
        assertThat(get(context, "health").statusCode()).isEqualTo(200);
    }

    @EnableAutoConfiguration
    static class Application {}
}
