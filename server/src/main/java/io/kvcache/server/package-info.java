/// The standalone cache server. Nothing lives here yet: the front ends (RESP, `lm://`, HTTP), the configuration
/// file and the place that wires tiers, devices and transports together arrive with the server.
///
/// May import every other production module; nothing but `io.kvcache.bench` may import it.
@NullMarked
package io.kvcache.server;

import org.jspecify.annotations.NullMarked;
