package io.kvcache.server;

import io.kvcache.server.http.Area;
import java.util.List;

/// What is served over HTTP beside objects and pages.
///
/// @param everybodys of each tenant its own
/// @param operators only where pages that tell of all tenants are shown too
record Areas(List<Area> everybodys, List<Area> operators) {}
