package io.kvcache.server;

import io.kvcache.server.http.HttpEndpoint;
import java.util.List;

/// What is served over HTTP beside objects and pages.
///
/// @param tenantEndpoints of each tenant its own
/// @param operatorEndpoints only where pages that tell of all tenants are shown too
record HttpEndpoints(List<HttpEndpoint> tenantEndpoints, List<HttpEndpoint> operatorEndpoints) {}
