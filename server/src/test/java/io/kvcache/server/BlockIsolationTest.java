package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.SseTestClient.Event;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// One tenant tries to get at another's blocks and events.
@Timeout(300)
@Tag("slow")
final class BlockIsolationTest {

    private static final String SHAPE =
            "{\"shape\":{\"layers\":1,\"kvHeads\":1,\"headDim\":8,\"blockTokens\":4,\"dtype\":\"bf16\"}}";
    private static final String OTHER_SHAPE = SHAPE.replace("\"layers\":1", "\"layers\":2");

    private final TestServer server = TestServer.start(new AccessConfig(
            List.of(
                    listener("blue", Set.of(ListenProtocol.HTTP)),
                    listener("green", Set.of(ListenProtocol.HTTP, ListenProtocol.PAGES)),
                    new ListenerConfig(
                            "ops",
                            "ops",
                            "127.0.0.1",
                            0,
                            Set.of(ListenProtocol.PAGES),
                            ListenerAuthConfig.UNRESTRICTED)),
            List.of(tenant("blue"), tenant("green"), TenantConfig.defaultTenant())));

    private final HttpTestClient blue = new HttpTestClient(server.port(0));
    private final HttpTestClient green = new HttpTestClient(server.port(1));
    private final HttpTestClient operator = new HttpTestClient(server.port(2));

    private static ListenerConfig listener(String tenant, Set<ListenProtocol> protocols) {
        return new ListenerConfig(
                tenant,
                tenant,
                "127.0.0.1",
                0,
                protocols,
                new ListenerAuthConfig(tenant, false, false, List.of(), List.of()));
    }

    private static TenantConfig tenant(String name) {
        return new TenantConfig(name, name, name, null, null, 0);
    }

    @AfterEach
    void stop() {
        List.of(blue, green, operator).forEach(HttpTestClient::close);
        server.close();
    }

    @Test
    void givenTwoTenants_whenTheyNameTheirBlocksAlike_thenNeitherSeesTheOthers() throws Exception {
        HttpResponse<byte[]> ofBlue = blue.put("/v1/namespaces/m", SHAPE);
        assertThat(green.get("/v1/namespaces/m").statusCode()).isEqualTo(404);
        assertThat(green.put("/v1/blocks/m/00", new byte[128]).statusCode()).isEqualTo(404);
        HttpResponse<byte[]> ofGreen = green.put("/v1/namespaces/m", OTHER_SHAPE);
        assertThat(ofBlue.statusCode()).isEqualTo(201);
        assertThat(ofGreen.statusCode()).isEqualTo(201);
        assertThat(HttpTestClient.json(ofBlue).get("digest"))
                .isNotEqualTo(HttpTestClient.json(ofGreen).get("digest"));

        assertThat(blue.put("/v1/blocks/m/00", new byte[128]).statusCode()).isEqualTo(201);
        assertThat(green.get("/v1/blocks/m/00").statusCode()).isEqualTo(404);
        assertThat(HttpTestClient.json(green.post("/v1/blocks/match", "{\"namespace\":\"m\",\"keys\":[\"00\"]}"))
                        .get("blocks")
                        .intValue())
                .isZero();
        assertThat(green.put("/v1/blocks/m/01?parent=00", new byte[256]).statusCode())
                .isEqualTo(409);
        assertThat(green.put("/v1/blocks/m/00", new byte[256]).statusCode()).isEqualTo(201);
        assertThat(blue.get("/v1/blocks/m/00").body()).hasSize(128);
    }

    @Test
    void givenEvents_whenFollowed_thenOnlyWherePagesAreShownAndOnlyTheTenantsOwn() throws Exception {
        assertThat(blue.get("/v1/events").statusCode()).isEqualTo(404);
        assertThat(blue.get("/v1/disks").statusCode()).isEqualTo(404);
        assertThat(blue.post("/v1/disks/0/reopen", "").statusCode()).isEqualTo(404);
        assertThat(HttpTestClient.json(blue.get("/nosuch")).get("detail").stringValue())
                .contains("/v1/blocks/match")
                .doesNotContain("disks", "events");
        assertThat(operator.get("/v1/disks").statusCode()).isEqualTo(200);
        assertThat(operator.get("/v1/namespaces").statusCode()).isEqualTo(404);
        try (SseTestClient events = new SseTestClient(green, green.request("/v1/events?from=oldest"))) {
            blue.put("/v1/objects/secret", "value");
            green.put("/v1/objects/own", "value");
            green.send(green.request("/v1/objects/own").DELETE());
            Event first = Objects.requireNonNull(events.next());
            Event second = Objects.requireNonNull(events.next());
            assertThat(first.data().get("sequence").intValue()).isEqualTo(1);
            assertThat(second.name()).isEqualTo("removed");
            assertThat(second.data().get("key")).isEqualTo(first.data().get("key"));
        }
    }

    @Test
    void givenAnothersBlock_whenDeleted_thenItIsNotThereAndStays() throws Exception {
        blue.put("/v1/namespaces/m", SHAPE);
        green.put("/v1/namespaces/m", SHAPE);
        assertThat(blue.put("/v1/blocks/m/00", new byte[128]).statusCode()).isEqualTo(201);
        assertThat(green.send(green.request("/v1/blocks/m/00").DELETE()).statusCode())
                .isEqualTo(404);
        assertThat(blue.get("/v1/blocks/m/00").statusCode()).isEqualTo(200);
    }

    @Test
    void givenATenantWithinItsShare_whenAnotherFloodsTheStoreWithBlocks_thenItsBlocksStay() throws Exception {
        String large =
                "{\"shape\":{\"layers\":16,\"kvHeads\":8,\"headDim\":128,\"blockTokens\":16,\"dtype\":\"bf16\"}}";
        byte[] block = new byte[1 << 20];
        blue.put("/v1/namespaces/m", large);
        green.put("/v1/namespaces/m", large);
        int kept = 32; // MiB, of a third of 192
        for (int number = 0; number < kept; number++) {
            assertThat(blue.put("/v1/blocks/m/" + String.format("%04x", number), block)
                            .statusCode())
                    .isEqualTo(201);
        }
        for (int number = 0; number < 200; number++) {
            assertThat(green.put("/v1/blocks/m/" + String.format("%04x", number), block)
                            .statusCode())
                    .isEqualTo(201);
        }
        for (int number = 0; number < kept; number++) {
            assertThat(blue.get("/v1/blocks/m/" + String.format("%04x", number)).statusCode())
                    .as("block %d", number)
                    .isEqualTo(200);
        }
    }
}
