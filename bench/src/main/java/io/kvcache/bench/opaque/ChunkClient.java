package io.kvcache.bench.opaque;

import java.io.IOException;

/// One connection of an engine that keeps chunks of KV in a server, each under a key of its own.
interface ChunkClient extends AutoCloseable {

    boolean exists(String key) throws IOException;

    /// Whether it was there, and had as many bytes as a chunk has.
    boolean get(String key) throws IOException;

    void put(String key) throws IOException;

    @Override
    void close() throws IOException;
}
