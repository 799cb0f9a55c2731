package io.kvcache.junit;

import java.net.URI;

/// The addresses of a running test server, all on loopback.
///
/// @param host the address that it listens at, `127.0.0.1`
/// @param port of the Redis protocol, LMCache's protocol and HTTP
/// @param transportPort of [io.kvcache.transport.client.RemoteKvCache]
public record ServerAddresses(String host, int port, int transportPort) {

    /// Returns the address for a client of Redis: `redis://127.0.0.1:PORT`.
    public URI redis() {
        return URI.create("redis://" + host + ":" + port);
    }

    /// Returns the address for a client of HTTP: `http://127.0.0.1:PORT`.
    public URI http() {
        return URI.create("http://" + host + ":" + port);
    }

    /// Returns the address for [io.kvcache.transport.client.RemoteKvCache#connect] and for the property
    /// `kvcache.addresses` of the Spring Boot starter: `127.0.0.1:PORT`.
    public String transport() {
        return host + ":" + transportPort;
    }
}
