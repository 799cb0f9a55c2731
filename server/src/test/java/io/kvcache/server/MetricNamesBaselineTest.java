package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.baseline.Baseline;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The names, kinds and labels on `/metrics`: dashboards and alerts of others hang on them.
@Tag(Baseline.RECORDED_TAG)
final class MetricNamesBaselineTest {

    @Test
    void givenAServerWithADisk_whenScraped_thenNamesAndLabelsAreAsRecorded(@TempDir Path folder) throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder.resolve("disk"));
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            httpTestClient.put("/v1/objects/k", new byte[10_000]);
            httpTestClient.get("/v1/objects/k");
            httpTestClient.get("/v1/objects/missing");
            assertThat(server.server().cache().flush(Duration.ofMinutes(1))).isTrue();
            httpTestClient.get("/metrics"); // so that the page's own request is counted

            String scrape = new String(httpTestClient.get("/metrics").body(), UTF_8);

            Baseline.compare(MetricNamesBaselineTest.class, "metrics.txt", names(scrape));
        }
    }

    /// `# TYPE name kind` and `name{label,…}`, each once. Values of labels may depend on the machine.
    private static List<String> names(String scrape) {
        return scrape.lines()
                .filter(line -> line.startsWith("# TYPE") || (!line.startsWith("#") && !line.isBlank()))
                .map(line -> line.startsWith("#")
                        ? line
                        : line.replaceAll("=\"(?:[^\"\\\\]|\\\\.)*\"", "").replaceAll(" [^ }]*$", ""))
                .distinct()
                .sorted()
                .toList();
    }
}
