package io.kvcache.bench.server;

import java.io.IOException;

/// One connection that asks and takes the whole answer before it asks again.
interface BenchClient extends AutoCloseable {

    /// Asks for a key, or sets it, whichever this exchange is for.
    void roundTrip(int key) throws IOException;

    @Override
    void close() throws IOException;

    /// Connects to a server.
    @FunctionalInterface
    interface ClientFactory {

        BenchClient open(int port) throws IOException;
    }
}
