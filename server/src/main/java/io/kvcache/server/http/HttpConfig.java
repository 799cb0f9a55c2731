package io.kvcache.server.http;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.KeyOwnershipRules;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The resources that one listener serves.
///
/// @param routers the objects that each tenant may ask for, by its name; empty for none at all
/// @param ownershipRules how requests name a tenant by its salt
/// @param textEndpoints by path
/// @param endpoints asked in turn for what is neither an object nor a page
/// @param hosts names by which clients may call a listener without authentication, beside numbers and localhost;
///     `*` for any
/// @param forwarder passes requests about objects of other servers of a cluster on; null for a server in none
/// @param owned what refuses requests about objects of other servers; null to take all
public record HttpConfig(
        ListenerAuth listenerAuth,
        Map<String, KeyspaceRouter> routers,
        Supplier<KeyOwnershipRules> ownershipRules,
        Map<String, TextEndpoint> textEndpoints,
        List<HttpEndpoint> endpoints,
        Set<String> hosts,
        @Nullable RequestForwarder forwarder,
        @Nullable HashSlotOwnership owned) {

    /// Any name.
    public static final String ANY_HOST = "*";

    public HttpConfig {
        routers = Map.copyOf(routers);
        textEndpoints = Map.copyOf(textEndpoints);
        endpoints = List.copyOf(endpoints);
        hosts = Set.copyOf(hosts);
    }

    /// What a server runs for clients of others, which know the tenant and the key.
    ///
    /// @param owned as above
    public static HttpConfig ofPassedOn(
            ListenerAuth listenerAuth, String tenant, KeyspaceRouter router, @Nullable HashSlotOwnership owned) {
        return new HttpConfig(
                listenerAuth,
                Map.of(tenant, router),
                () -> KeyOwnershipRules.NONE,
                Map.of(),
                List.of(),
                Set.of(ANY_HOST),
                null,
                owned);
    }

    /// A page that is made when it is asked for.
    ///
    /// @param isPublic whether unauthenticated clients may see it
    /// @param healthy whether it is answered by 200 and not by 503
    /// @param body text in UTF-8
    public record TextEndpoint(String contentType, boolean isPublic, Supplier<Boolean> healthy, Supplier<String> body) {

        /// A page that is always well.
        public static TextEndpoint of(String contentType, Supplier<String> body) {
            return new TextEndpoint(contentType, false, () -> true, body);
        }
    }
}
