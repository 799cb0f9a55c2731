package io.kvcache.transport.tcp;

import io.kvcache.transport.link.Connector;
import io.kvcache.transport.link.FrameHandler;
import io.kvcache.transport.link.Line;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/// Opens TCP connections to one host and port, whose name is looked up each time.
public final class TcpConnector implements Connector {

    private final String host;
    private final int port;

    /// @param port 1 to 65,535
    public TcpConnector(String host, int port) {
        this.host = host;
        this.port = port;
    }

    @Override
    public Line connect(FrameHandler handler, long timeoutNanos) throws IOException {
        InetSocketAddress address = new InetSocketAddress(host, port);
        if (address.isUnresolved()) {
            throw new UnknownHostException(host + ": no such host");
        }
        SocketChannel channel = SocketChannel.open();
        try {
            channel.socket().connect(address, Math.clamp(TimeUnit.NANOSECONDS.toMillis(timeoutNanos), 1, 60_000));
            requireAnother(channel);
            return new TcpLine(TcpLine.prepared(channel), handler);
        } catch (IOException failed) {
            channel.close();
            throw failed;
        }
    }

    /// Where nobody listens at a port that the kernel also gives to clients, it may give it to the very client that
    /// asks for it, which then meets itself, and keeps its server from coming back there.
    ///
    /// @throws ConnectException when this is such a connection
    static void requireAnother(SocketChannel channel) throws IOException {
        if (channel.getLocalAddress().equals(channel.getRemoteAddress())) {
            throw new ConnectException("nobody listens at " + channel.getRemoteAddress());
        }
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
