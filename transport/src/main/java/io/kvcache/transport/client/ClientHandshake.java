package io.kvcache.transport.client;

import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Handshake.Proof;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Opens a connection and authenticates; then passes its frames on to the connection's user.
final class ClientHandshake implements FrameHandler {

    private static final String CLIENT = "kvcache for Java";

    private final @Nullable Secret secret;
    private final Hello hello;
    private @Nullable Challenge challenge;
    private @Nullable Welcome welcome;
    private @Nullable RpcException refusal;
    private @Nullable FrameHandler next;
    private boolean answered;
    private volatile @Nullable DisconnectReason closed;

    private ClientHandshake(@Nullable Secret secret, Hello hello) {
        this.secret = secret;
        this.hello = hello;
    }

    /// An authenticated connection, and the switch for its frames.
    record OpenedConnection(
            FrameConnection connection, Challenge challenge, Welcome welcome, ClientHandshake handshake) {

        /// Passes all further frames to a handler.
        void handOverTo(FrameHandler handler) {
            handshake.next = handler;
        }
    }

    /// Identity of the client, and how it connects.
    ///
    /// @param callTimeouts of threads that wait at a connection
    /// @param joined the session, or null to begin one
    /// @param timeoutNanos until it is open and both sides are authenticated
    record HandshakeSettings(
            RemoteOptions options,
            CallTimeouts callTimeouts,
            @Nullable Welcome joined,
            long timeoutNanos) {}

    /// Begins a session, or joins one.
    static OpenedConnection open(Connector connector, HandshakeSettings settings) throws IOException, RpcException {
        RemoteOptions options = settings.options;
        Welcome joined = settings.joined;
        Hello hello = new Hello(
                Hello.VERSION,
                joined == null ? 0 : joined.session(),
                capabilities(options),
                Secret.random(Hello.NONCE_BYTES),
                joined == null ? Secret.zeros(Hello.TICKET_BYTES) : joined.ticket(),
                (int) options.lease().toMillis(),
                options.tenant(),
                CLIENT);
        ClientHandshake handshake = new ClientHandshake(options.currentSecret(), hello);
        long until = System.nanoTime() + settings.timeoutNanos;
        FrameConnection connection = connector.connect(handshake, settings.timeoutNanos);
        long left = Math.max(1, until - System.nanoTime());
        settings.callTimeouts.begin(connection, left);
        try {
            Welcome welcome = handshake.run(connection, left);
            return new OpenedConnection(connection, Objects.requireNonNull(handshake.challenge), welcome, handshake);
        } catch (RpcException failed) {
            connection.close(DisconnectReason.UNAUTHORIZED);
            throw failed;
        } catch (RuntimeException | Error bug) {
            connection.close(DisconnectReason.INTERNAL);
            throw bug;
        } finally {
            settings.callTimeouts.end(connection);
        }
    }

    private static long capabilities(RemoteOptions options) {
        return (options.sharedMemory() == SharedMemoryMode.OFF ? 0 : Hello.SHARED_MEMORY)
                | (options.localOnly() ? Hello.LOCAL_ONLY : 0)
                | (options.serverSecret() == null ? 0 : Hello.SERVER);
    }

    private Welcome run(FrameConnection connection, long patienceNanos) throws RpcException {
        connection.send(hello.frame(1, patienceNanos));
        while (challenge == null) {
            pump(connection, patienceNanos);
        }
        if (challenge.version() != Hello.VERSION) {
            throw RpcException.rejected(
                    Status.UNSUPPORTED, "version = " + challenge.version() + "; allowed: " + Hello.VERSION);
        }
        Proof proof = new Proof(secret == null ? Secret.zeros(1) : secret, hello, challenge);
        Secret shown = challenge.proofRequired() ? proof.clientProof() : Secret.zeros(Proof.BYTES);
        connection.send(new BodyWriter().bytes(shown.bytes()).request(MessageType.AUTH, 2, patienceNanos));
        while (welcome == null) {
            pump(connection, patienceNanos);
        }
        if (secret != null && !welcome.proof().equals(proof.serverProof())) {
            throw RpcException.rejected(Status.UNAUTHORIZED, "the server does not know the secret");
        }
        return welcome;
    }

    private void pump(FrameConnection connection, long patienceNanos) throws RpcException {
        boolean open = connection.pump();
        if (refusal != null) {
            throw refusal;
        }
        if (!open) {
            throw RpcException.noReply(closeReason(patienceNanos));
        }
    }

    /// Bytes that are not even a challenge are of another protocol.
    private String closeReason(long patienceNanos) {
        if (answered && challenge == null) {
            return "what answers does not speak KVCache's protocol; it must be a port of transport.listen, 7420 by"
                    + " default";
        }
        return closed == DisconnectReason.STALLED
                ? "it took the connection and was silent for " + TimeUnit.NANOSECONDS.toMillis(patienceNanos) + " ms"
                : "it closed the connection while that was opened";
    }

    @Override
    public void onBytesReceived() {
        answered = true;
        if (next != null) {
            next.onBytesReceived();
        }
    }

    @Override
    public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
        if (next != null) {
            next.onMessage(header, body);
        } else if (header.status() != Status.OK) {
            refusal = RpcException.rejected(header.status(), body.text("text"));
        } else if (challenge == null) {
            challenge = Challenge.read(body);
        } else {
            welcome = Welcome.read(body);
        }
    }

    @Override
    public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
        if (next == null) {
            throw new ProtocolException("a payload in the handshake; allowed: none");
        }
        return next.onPayload(header, body);
    }

    @Override
    public void onClosed(DisconnectReason reason) {
        closed = reason;
        if (next != null) {
            next.onClosed(reason);
        }
    }
}
