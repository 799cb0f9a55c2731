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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import org.jspecify.annotations.Nullable;

/// One connection to a server.
///
/// **Threads.** One at a time.
public final class RespClient implements AutoCloseable {

    /// What is handed to the system at a time, so that a server that takes no more is noticed.
    private static final int WRITE_BYTES = 1 << 20;

    private static final System.Logger LOG = System.getLogger(RespClient.class.getName());
    private static final byte[] END = {'\r', '\n'};

    private final Socket plain = new Socket();

    /// The same, or TLS over it.
    private final Socket socket;

    private final InputStream in;
    private final OutputStream out;
    private final ClientConfig clientConfig;
    private final Duration timeout;
    private boolean replyReceived;

    /// Connects and authenticates; waits [ClientConfig#ANSWER_TIMEOUT] for each answer.
    ///
    /// @throws IOException when there is no server, when authentication fails, or when it refuses, with its reason
    public RespClient(ClientConfig clientConfig) throws IOException {
        this(clientConfig, ClientConfig.ANSWER_TIMEOUT);
    }

    /// @param timeout until a connection is made, and for which a server may send nothing of a reply, or take nothing
    ///     of a request
    RespClient(ClientConfig clientConfig, Duration timeout) throws IOException {
        this.clientConfig = clientConfig;
        this.timeout = timeout;
        try {
            socket = connect();
            in = new BufferedInputStream(socket.getInputStream());
            out = socket.getOutputStream();
            ClientCredentials clientCredentials = clientConfig.clientCredentials();
            if (clientCredentials != null) {
                call(clientCredentials.authCommand());
            }
        } catch (IOException failed) {
            plain.close();
            throw failed;
        }
    }

    private Socket connect() throws IOException {
        int millis = (int) timeout.toMillis();
        try {
            plain.connect(new InetSocketAddress(clientConfig.host(), clientConfig.port()), millis);
            plain.setSoTimeout(millis);
            plain.setTcpNoDelay(true); // a request is several writes, and none is to wait for an acknowledgement
            SSLContext tls = clientConfig.tls();
            return tls == null ? plain : withTls(plain, clientConfig, tls);
        } catch (SocketTimeoutException silent) {
            throw new IOException(clientConfig.describeTimeout(timeout), silent);
        } catch (SSLException failed) {
            throw new IOException(clientConfig.describeTlsFailure(failed), failed);
        } catch (IOException failed) {
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
        } catch (SocketTimeoutException silent) {
            throw new IOException(clientConfig.describeTimeout(timeout), silent);
        } catch (SSLException failed) {
            throw replyReceived ? failed : new IOException(clientConfig.describeTlsFailure(failed), failed);
        } catch (EOFException | SocketException ended) {
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
            writeInParts(argument);
            head.writeBytes(END);
        }
        head.writeTo(out);
        out.flush();
    }

    /// A write waits for ever for a server that takes nothing; ends the connection then.
    private void writeInParts(byte[] bytes) throws IOException {
        for (int at = 0; at < bytes.length; at += WRITE_BYTES) {
            CompletableFuture<Void> taken = new CompletableFuture<>();
            taken.orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS).exceptionally(_ -> endWrites());
            try {
                out.write(bytes, at, Math.min(WRITE_BYTES, bytes.length - at));
                out.flush();
            } catch (IOException ended) {
                throw taken.isDone() ? new SocketTimeoutException("the server takes nothing") : ended;
            } finally {
                taken.complete(null);
            }
        }
    }

    /// Ends the connection below TLS, whose own close would wait for the write.
    private @Nullable Void endWrites() {
        try {
            plain.close();
        } catch (IOException closed) {
            LOG.log(System.Logger.Level.DEBUG, "a connection could not be closed", closed);
        }
        return null;
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
