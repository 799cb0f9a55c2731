package io.kvcache.server;

import static io.kvcache.server.BusClusterServers.await;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// Servers of one cluster whose settings differ.
final class ClusterSettingsTest {

    private static JsonNode differences(HttpTestClient client, int node) {
        try {
            return HttpTestClient.json(client.get("/v1/cluster")).at("/nodes/" + node + "/configDiffers");
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    @Test
    void givenAServerWithAnotherQuota_whenAsked_thenThePageNamesTheSetting(@TempDir Path folder) throws Exception {
        String tenant = "tenants: [ { name: alice, prefixes: [ 'alice:' ], quota: %s } ]\n";
        try (BusClusterServers servers = new BusClusterServers(folder);
                HttpTestClient client = new HttpTestClient(servers.start("kv-0", tenant.formatted("16MiB"))
                        .address()
                        .getPort())) {
            servers.start("kv-1", tenant.formatted("8MiB"));
            servers.start("kv-2", tenant.formatted("16MiB"));

            await(() ->
                    differences(client, 1).isArray() && differences(client, 2).isArray());

            assertThat(differences(client, 0)).isEmpty();
            assertThat(differences(client, 1))
                    .singleElement()
                    .satisfies(setting -> assertThat(setting.stringValue()).isEqualTo("tenants.alice.quota"));
            assertThat(differences(client, 2)).isEmpty();
        }
    }
}
