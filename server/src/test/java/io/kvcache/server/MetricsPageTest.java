package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.metrics.MetricRules;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class MetricsPageTest {

    private static String metrics(Http http) throws Exception {
        return new String(http.get("/metrics").body(), UTF_8);
    }

    @Test
    void givenAServerWithADisk_whenScraped_thenPrometheusRulesHold(@TempDir Path folder) throws Exception {
        try (DiskServer server = new DiskServer(folder.resolve("disk"));
                Http http = new Http(server.port())) {
            http.put("/v1/objects/k", new byte[10_000]);
            http.get("/v1/objects/k");
            assertThat(server.server().cache().flush(TimeUnit.MINUTES.toNanos(1)))
                    .isTrue();

            String scrape = metrics(http);

            assertThat(MetricRules.broken(scrape)).isEmpty();
            assertThat(scrape)
                    .contains(
                            "kv_disk_latency_seconds_bucket{cache=\"server\",disk=\"0\",what=\"write\",le=\"+Inf\"} 1",
                            "# TYPE process_cpu_seconds_total counter");
        }
    }
}
