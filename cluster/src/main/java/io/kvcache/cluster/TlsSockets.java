package io.kvcache.cluster;

import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.jgroups.util.DefaultSocketFactory;

/// Sockets of JGroups with TLS 1.3 and a certificate on both sides.
final class TlsSockets extends DefaultSocketFactory {

    private static final System.Logger LOG = System.getLogger(TlsSockets.class.getName());

    private static final String[] PROTOCOLS = {"TLSv1.3"};

    private final SSLContext context;
    private final int silenceMillis;

    /// @param silenceMillis a connection that is silent for longer is closed, in its handshake or later. Members send
    ///     heartbeats far more often
    TlsSockets(SSLContext context, int silenceMillis) {
        super(context);
        this.context = context;
        this.silenceMillis = silenceMillis;
        setSocketConfigurator(socket -> configure((SSLSocket) socket));
    }

    private void configure(SSLSocket socket) {
        try {
            socket.setEnabledProtocols(PROTOCOLS);
            socket.setSoTimeout(silenceMillis);
        } catch (SocketException closed) {
            LOG.log(Level.DEBUG, "a new socket is closed", closed);
        }
    }

    @Override
    public ServerSocket createServerSocket(String service) throws IOException {
        return new MemberServerSocket(this::shakeHands);
    }

    private Socket shakeHands(Socket socket) throws IOException {
        try {
            SSLSocket tls = (SSLSocket) context.getSocketFactory().createSocket(socket, null, true);
            tls.setNeedClientAuth(true);
            configure(tls);
            tls.startHandshake();
            return tls;
        } catch (SSLException refused) {
            throw new MemberServerSocket.RefusedException(
                    refused.getMessage()
                            + "; a server of the cluster has a certificate that cluster.tls.authority has signed",
                    refused);
        }
    }
}
