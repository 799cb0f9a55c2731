package io.kvcache.transport.remote;

import io.kvcache.transport.link.Connector;
import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.link.FrameConnection;
import io.kvcache.transport.link.FrameHandler;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Challenge;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Hello;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Proof;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import io.kvcache.transport.wire.Welcome;
import java.io.IOException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Opens a connection and says who is there; then passes its frames on to whoever it is for.
final class Handshake implements FrameHandler {

    private final Means means;
    private final Hello hello;
    private @Nullable Challenge challenge;
    private @Nullable Welcome welcome;
    private @Nullable CallFailed refusal;
    private @Nullable FrameHandler next;

    private Handshake(Means means, Hello hello) {
        this.means = means;
        this.hello = hello;
    }

    /// A connection that may be used, and how to hear it.
    record Opened(FrameConnection line, Challenge challenge, Welcome welcome, Handshake handshake) {

        /// From now on, frames go there.
        void to(FrameHandler handler) {
            handshake.next = handler;
        }
    }

    /// Who connects, and how.
    ///
    /// @param deadlines of those who wait at a connection
    /// @param joined the session, or null to begin one
    /// @param patienceNanos until it is open and both sides have said who they are
    record Means(
            RemoteOptions options,
            Deadlines deadlines,
            @Nullable Welcome joined,
            long patienceNanos) {}

    /// Begins a session, or joins one.
    static Opened open(Connector connector, Means means) throws IOException, CallFailed {
        RemoteOptions options = means.options;
        Welcome joined = means.joined;
        Hello hello = new Hello(
                Hello.VERSION,
                joined == null ? 0 : joined.session(),
                options.sharedMemory() == SharedMemoryUse.OFF ? 0 : Hello.SHARED_MEMORY,
                Secret.random(Hello.NONCE_BYTES),
                joined == null ? Secret.none(Hello.TICKET_BYTES) : joined.ticket(),
                (int) options.lease().toMillis(),
                options.tenant());
        Handshake handshake = new Handshake(means, hello);
        long until = System.nanoTime() + means.patienceNanos;
        FrameConnection line = connector.connect(handshake, means.patienceNanos);
        long left = Math.max(1, until - System.nanoTime());
        means.deadlines.begin(line, left);
        try {
            Welcome welcome = handshake.run(line, left);
            return new Opened(line, Objects.requireNonNull(handshake.challenge), welcome, handshake);
        } catch (CallFailed failed) {
            line.close(DisconnectReason.UNAUTHORIZED);
            throw failed;
        } catch (RuntimeException | Error bug) {
            line.close(DisconnectReason.INTERNAL);
            throw bug;
        } finally {
            means.deadlines.end(line);
        }
    }

    private Welcome run(FrameConnection line, long patienceNanos) throws CallFailed {
        line.send(hello.frame(1, patienceNanos));
        while (challenge == null) {
            pump(line);
        }
        if (challenge.version() != Hello.VERSION) {
            throw CallFailed.refused(
                    Status.UNSUPPORTED, "version = " + challenge.version() + "; allowed: " + Hello.VERSION);
        }
        Secret secret = means.options.secret();
        Proof proof = new Proof(secret == null ? Secret.none(1) : secret, hello, challenge);
        Secret shown = challenge.secret() ? proof.ofClient() : Secret.none(Proof.BYTES);
        line.send(new BodyWriter().bytes(shown.bytes()).request(MessageType.AUTH, 2, patienceNanos));
        while (welcome == null) {
            pump(line);
        }
        if (secret != null && !welcome.proof().equals(proof.ofServer())) {
            throw CallFailed.refused(Status.UNAUTHORIZED, "the server does not know the secret");
        }
        return welcome;
    }

    private void pump(FrameConnection line) throws CallFailed {
        boolean open = line.pump();
        if (refusal != null) {
            throw refusal;
        }
        if (!open) {
            throw CallFailed.unanswered("the connection broke while it was opened");
        }
    }

    @Override
    public void message(FrameHeader header, BodyReader body) throws Violation {
        if (next != null) {
            next.onMessage(header, body);
        } else if (header.status() != Status.OK) {
            refusal = CallFailed.refused(header.status(), body.text("text"));
        } else if (challenge == null) {
            challenge = Challenge.read(body);
        } else {
            welcome = Welcome.read(body);
        }
    }

    @Override
    public PayloadSink payload(FrameHeader header, BodyReader body) throws Violation {
        if (next == null) {
            throw new Violation("a payload in the handshake; allowed: none");
        }
        return next.onPayload(header, body);
    }

    @Override
    public void closed(DisconnectReason reason) {
        if (next != null) {
            next.onClosed(reason);
        }
    }
}
