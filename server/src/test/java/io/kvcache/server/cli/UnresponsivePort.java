package io.kvcache.server.cli;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;

/// A port of this machine without a listener, held so that no process can listen at it while this is open.
final class UnresponsivePort implements AutoCloseable {

    private final Socket bound = new Socket();

    UnresponsivePort() throws IOException {
        bound.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    }

    int number() {
        return bound.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        bound.close();
    }
}
