package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.metrics.MetricLint;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class MetricsEndpointTest {

    private static String metrics(HttpTestClient httpTestClient) throws Exception {
        return new String(httpTestClient.get("/metrics").body(), UTF_8);
    }

    @Test
    void givenAServerWithADisk_whenScraped_thenPrometheusRulesHold(@TempDir Path folder) throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder.resolve("disk"));
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            httpTestClient.put("/v1/objects/k", new byte[10_000]);
            httpTestClient.get("/v1/objects/k");
            assertThat(server.server().cache().flush(Duration.ofMinutes(1))).isTrue();

            String scrape = metrics(httpTestClient);

            assertThat(MetricLint.violations(scrape)).isEmpty();
            assertThat(scrape)
                    .contains(
                            "kv_disk_latency_seconds_bucket{cache=\"server\",disk=\"0\",what=\"write\",le=\"+Inf\"} 1",
                            "# TYPE process_cpu_seconds_total counter");
        }
    }
}
