package io.kvcache.bench.opaque;

import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import io.kvcache.server.client.RespReply;
import java.io.IOException;

/// Chunks by Redis' protocol, as LMCache's `resp://` asks for them.
final class RespChunkClient implements ChunkClient {

    private final RespClient client;
    private final byte[] value;

    RespChunkClient(int port, byte[] value) throws IOException {
        client = new RespClient(ClientConfig.open("127.0.0.1", port));
        this.value = value;
    }

    @Override
    public boolean exists(String key) throws IOException {
        return client.call("EXISTS", key).asLong() == 1;
    }

    @Override
    public boolean get(String key) throws IOException {
        RespReply reply = client.call("GET", key);
        return reply.isPresent() && reply.bytes().length == value.length;
    }

    @Override
    public void put(String key) throws IOException {
        client.set(key, value);
    }

    @Override
    public void close() throws IOException {
        client.close();
    }
}
