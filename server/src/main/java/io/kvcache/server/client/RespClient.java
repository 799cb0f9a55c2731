package io.kvcache.server.client;

import io.kvcache.server.client.ClientConfig.ClientCredentials;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/// One connection to a server.
///
/// **Threads.** One at a time.
public final class RespClient implements AutoCloseable {

    private static final int CONNECT_TIMEOUT_MILLIS =
            (int) Duration.ofSeconds(5).toMillis();
    private static final int READ_TIMEOUT_MILLIS = (int) Duration.ofSeconds(60).toMillis();
    private static final byte[] END = {'\r', '\n'};

    private final Socket socket;
    private final InputStream in;
    private final OutputStream out;
    private final ClientConfig clientConfig;
    private boolean replyReceived;

    /// Connects and authenticates.
    ///
    /// @throws IOException when there is no server, when authentication fails, or when it refuses, with its reason
    public RespClient(ClientConfig clientConfig) throws IOException {
        this.clientConfig = clientConfig;
        socket = connect(clientConfig);
        try {
            in = new BufferedInputStream(socket.getInputStream());
            out = socket.getOutputStream();
            ClientCredentials clientCredentials = clientConfig.clientCredentials();
            if (clientCredentials != null) {
                call(clientCredentials.authCommand());
            }
        } catch (IOException failed) {
            socket.close();
            throw failed;
        }
    }

    private static Socket connect(ClientConfig clientConfig) throws IOException {
        Socket plain = new Socket();
        try {
            plain.connect(new InetSocketAddress(clientConfig.host(), clientConfig.port()), CONNECT_TIMEOUT_MILLIS);
            plain.setSoTimeout(READ_TIMEOUT_MILLIS);
            plain.setTcpNoDelay(true); // a request is several writes, and none is to wait for an acknowledgement
            SSLContext tls = clientConfig.tls();
            return tls == null ? plain : withTls(plain, clientConfig, tls);
        } catch (SSLException failed) {
            plain.close();
            throw new IOException(clientConfig.describeTlsFailure(failed), failed);
        } catch (IOException failed) {
            plain.close();
            throw new IOException(clientConfig.describeNoServer(failed), failed);
        }
    }

    private static Socket withTls(Socket plain, ClientConfig clientConfig, SSLContext tls) throws IOException {
        SSLSocket socket =
                (SSLSocket) tls.getSocketFactory().createSocket(plain, clientConfig.host(), clientConfig.port(), true);
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS"); // the name must be the certificate's
        socket.setSSLParameters(parameters);
        socket.startHandshake();
        return socket;
    }

    /// Asks with words.
    ///
    /// @throws IOException when the server refuses, with its reason
    public RespReply call(String... words) throws IOException {
        byte[][] arguments = new byte[words.length][];
        for (int i = 0; i < words.length; i++) {
            arguments[i] = words[i].getBytes(StandardCharsets.UTF_8);
        }
        return call(arguments);
    }

    /// Stores a value.
    public void set(String key, byte[] value) throws IOException {
        call(ascii("SET"), key.getBytes(StandardCharsets.UTF_8), value);
    }

    /// Names the likely reason when a server says nothing at all.
    private RespReply call(byte[]... arguments) throws IOException {
        try {
            send(arguments);
            return readReply();
        } catch (SSLException failed) {
            throw replyReceived ? failed : new IOException(clientConfig.describeTlsFailure(failed), failed);
        } catch (EOFException | SocketException | SocketTimeoutException ended) {
            throw replyReceived
                    ? ended
                    : new IOException(clientConfig.describeNoReply("the connection ended without a RESP reply"), ended);
        }
    }

    private void send(byte[]... arguments) throws IOException {
        ByteArrayOutputStream head = new ByteArrayOutputStream();
        head.writeBytes(ascii("*" + arguments.length + "\r\n"));
        for (byte[] argument : arguments) {
            head.writeBytes(ascii("$" + argument.length + "\r\n"));
            head.writeTo(out);
            head.reset();
            out.write(argument);
            head.writeBytes(END);
        }
        head.writeTo(out);
        out.flush();
    }

    private RespReply readReply() throws IOException {
        String line = readLine();
        replyReceived = true;
        String rest = line.substring(1);
        return switch (line.charAt(0)) {
            case '+', ':' -> new RespReply(true, rest.getBytes(StandardCharsets.UTF_8));
            case '-' ->
                throw new IOException("the server says: " + rest
                        + (rest.startsWith("NOAUTH") ? ClientConfig.CREDENTIALS_ADVICE : ""));
            case '$' -> readBulk(Integer.parseInt(rest));
            default -> throw new IOException("the server does not speak Redis' protocol");
        };
    }

    private RespReply readBulk(int bytes) throws IOException {
        if (bytes < 0) {
            return new RespReply(false, new byte[0]);
        }
        byte[] value = in.readNBytes(bytes);
        if (value.length < bytes || in.readNBytes(END.length).length < END.length) {
            throw new EOFException("the server closed the connection within a reply");
        }
        return new RespReply(true, value);
    }

    private String readLine() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("the server closed the connection");
            }
            line.write(next);
        }
        String text = line.toString(StandardCharsets.UTF_8).stripTrailing();
        if (text.isEmpty()) {
            throw new IOException("the server does not speak Redis' protocol");
        }
        return text;
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    /// A server's reply.
    ///
    /// @param isPresent false for "there is none"
    /// @param bytes of the text, number or value
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record RespReply(boolean isPresent, byte[] bytes) {

        /// The answer as text.
        public String asText() {
            return new String(bytes, StandardCharsets.UTF_8);
        }

        /// The answer as a number.
        public long asLong() {
            return Long.parseLong(asText());
        }
    }
}
