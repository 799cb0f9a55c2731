package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.SseTestClient.Event;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// One tenant tries to get at another's events.
@Timeout(300)
@Tag("slow")
final class EventIsolationTest {

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
    void givenEvents_whenFollowed_thenOnlyWherePagesAreShownAndOnlyTheTenantsOwn() throws Exception {
        assertThat(blue.get("/v1/events").statusCode()).isEqualTo(404);
        assertThat(blue.get("/v1/disks").statusCode()).isEqualTo(404);
        assertThat(blue.post("/v1/disks/0/reopen", "").statusCode()).isEqualTo(404);
        assertThat(HttpTestClient.json(blue.get("/nosuch")).get("detail").stringValue())
                .contains("/v1/objects/")
                .doesNotContain("disks", "events");
        assertThat(operator.get("/v1/disks").statusCode()).isEqualTo(200);
        assertThat(operator.get("/v1/objects/own").statusCode()).isEqualTo(404);
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
}
