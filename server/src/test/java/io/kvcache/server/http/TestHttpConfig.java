package io.kvcache.server.http;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.keyspace.KeyOwnershipRules;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The resources of a listener where no key and no request names another tenant.
public final class TestHttpConfig {

    private TestHttpConfig() {}

    public static HttpConfig of(
            ListenerAuth auth,
            Keyspace keyspace,
            Map<String, TextEndpoint> pages,
            List<HttpEndpoint> endpoints,
            Set<String> hosts) {
        return new HttpConfig(
                auth,
                Map.of("default", KeyspaceRouter.of(keyspace)),
                () -> KeyOwnershipRules.NONE,
                pages,
                endpoints,
                hosts,
                null,
                null);
    }
}
