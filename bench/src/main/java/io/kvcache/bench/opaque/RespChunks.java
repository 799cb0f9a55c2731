package io.kvcache.bench.opaque;

import io.kvcache.server.client.Peer;
import io.kvcache.server.client.Reply;
import io.kvcache.server.client.StoreClient;
import java.io.IOException;

/// Chunks by Redis' protocol, as LMCache's `resp://` asks for them.
final class RespChunks implements ChunkClient {

    private final StoreClient client;
    private final byte[] value;

    RespChunks(int port, byte[] value) throws IOException {
        client = new StoreClient(Peer.open("127.0.0.1", port));
        this.value = value;
    }

    @Override
    public boolean exists(String key) throws IOException {
        return client.ask("EXISTS", key).number() == 1;
    }

    @Override
    public boolean get(String key) throws IOException {
        Reply reply = client.ask("GET", key);
        return reply.here() && reply.bytes().length == value.length;
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
