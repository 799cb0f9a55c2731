package io.kvcache.transport.wire;

import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Handshake.Proof;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.InvalidKeyException;
import java.security.NoSuchAlgorithmException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/// The frames at the beginning of a connection, in their order: HELLO, its reply with a challenge, AUTH with a
/// proof, and its reply, which welcomes the client.
public final class Handshake {

    private Handshake() {}

    /// The first frame of a connection: which client, and what for.
    ///
    /// @param version of the protocol that the client speaks at most
    /// @param session 0 to begin one, else the one to join
    /// @param capabilities bits of what the client can do or wants: [#SHARED_MEMORY], [#LOCAL_ONLY], [#SERVER]
    /// @param nonce 32 random bytes
    /// @param ticket 16 bytes that the session was given; zeros to begin one
    /// @param leaseMillis how long leases last without being renewed, as far as the server allows; 0 leaves
    ///     it to the server
    /// @param tenant that the client speaks for, or empty
    /// @param client its program and version, which operators see; [#MAX_CLIENT_BYTES] at most
    public record Hello(
            int version,
            long session,
            long capabilities,
            Secret nonce,
            Secret ticket,
            int leaseMillis,
            String tenant,
            String client) {

        /// The only version so far.
        public static final int VERSION = 1;

        /// Capability: maps memory that processes on its host share, or has such memory.
        public static final long SHARED_MEMORY = 1;

        /// Capability of a client: wants what the server itself has, and nothing that the server would fetch from
        /// others.
        public static final long LOCAL_ONLY = 2;

        /// Capability of a client: is another server of the same cluster. It proves that by the secret that this
        /// server has told the servers of its cluster, speaks for any tenant, and gets what [#LOCAL_ONLY] says.
        public static final long SERVER = 4;

        public static final int NONCE_BYTES = 32;
        public static final int TICKET_BYTES = 16;
        public static final int MAX_CLIENT_BYTES = 256;

        /// Returns whether the connection begins a session; else it joins one.
        public boolean startsSession() {
            return session == 0;
        }

        /// Returns whether the client says that it is a server of the same cluster.
        public boolean isServer() {
            return (capabilities & SERVER) != 0;
        }

        public OutboundFrame frame(long request, long deadlineNanos) {
            BodyWriter to = new BodyWriter(128);
            to.u16(version).u16(0).i32(leaseMillis).i64(session).i64(capabilities);
            to.bytes(nonce.bytes()).bytes(ticket.bytes()).text(tenant).text(client);
            return to.request(MessageType.HELLO, request, deadlineNanos);
        }

        public static Hello read(BodyReader from) throws ProtocolException {
            int version = from.u16("version");
            int lease = from.skip(Short.BYTES).count("lease");
            long session = from.i64("session");
            long capabilities = from.i64("capabilities");
            Secret nonce = new Secret(from.bytes("nonce", NONCE_BYTES));
            Secret ticket = new Secret(from.bytes("ticket", TICKET_BYTES));
            String tenant = from.text("tenant");
            String client = from.text("client");
            int bytes = client.getBytes(StandardCharsets.UTF_8).length;
            if (bytes > MAX_CLIENT_BYTES) {
                throw new ProtocolException("client has %s bytes; allowed: 0 to %s".formatted(bytes, MAX_CLIENT_BYTES));
            }
            return new Hello(version, session, capabilities, nonce, ticket, lease, tenant, client);
        }
    }

    /// The reply to HELLO: what the server speaks, and what the client has to prove.
    ///
    /// @param version that will be spoken
    /// @param proofRequired whether a proof is asked for
    /// @param capabilities bits of what the server has: [Handshake.Hello#SHARED_MEMORY], [#FABRIC] and [#STAGING]
    /// @param nonce 32 random bytes
    public record Challenge(int version, boolean proofRequired, long capabilities, Secret nonce) {

        /// Its memory can be read one-sided over a fabric.
        public static final long FABRIC = 2;

        /// It has memory that clients on its host write what they put into.
        public static final long STAGING = 4;

        /// Returns whether the server has a capability.
        public boolean hasCapability(long capability) {
            return (capabilities & capability) != 0;
        }

        public OutboundFrame frame(long request) {
            BodyWriter to = new BodyWriter();
            to.u16(version).u16(proofRequired ? 1 : 0).i32(0).i64(capabilities).bytes(nonce.bytes());
            return to.reply(MessageType.HELLO, request);
        }

        public static Challenge read(BodyReader from) throws ProtocolException {
            int version = from.u16("version");
            boolean secret = from.u16("secret") != 0;
            long capabilities = from.skip(Integer.BYTES).i64("capabilities");
            return new Challenge(version, secret, capabilities, new Secret(from.bytes("nonce", Hello.NONCE_BYTES)));
        }
    }

    /// Proof that a side knows the secret: `HMAC-SHA256(secret, label ‖ client nonce ‖ server nonce ‖ session as
    /// int64 ‖ tenant)`.
    ///
    /// The labels differ, so that neither side can be made to compute the other's proof. It protects the handshake,
    /// not what follows: an attacker that can change packets can take the connection over, so a link that is not
    /// trusted needs a tunnel.
    public static final class Proof {

        public static final int BYTES = 32;

        private static final String CLIENT = "kvcache client v1";
        private static final String SERVER = "kvcache server v1";

        private final Secret secret;
        private final Hello hello;
        private final Challenge challenge;

        /// Creates the proofs of one handshake.
        public Proof(Secret secret, Hello hello, Challenge challenge) {
            this.secret = secret;
            this.hello = hello;
            this.challenge = challenge;
        }

        public Secret clientProof() {
            return compute(CLIENT);
        }

        public Secret serverProof() {
            return compute(SERVER);
        }

        private Secret compute(String label) {
            try {
                Mac mac = Mac.getInstance("HmacSHA256");
                mac.init(new SecretKeySpec(secret.bytes(), "HmacSHA256"));
                mac.update(label.getBytes(StandardCharsets.US_ASCII));
                mac.update(hello.nonce().bytes());
                mac.update(challenge.nonce().bytes());
                mac.update(ByteBuffer.allocate(Long.BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putLong(hello.session())
                        .flip());
                return new Secret(mac.doFinal(hello.tenant().getBytes(StandardCharsets.UTF_8)));
            } catch (NoSuchAlgorithmException | InvalidKeyException e) {
                throw new AssertionError("this Java platform lacks HmacSHA256", e);
            }
        }
    }

    /// The reply to AUTH: the connection may be used.
    ///
    /// @param session that was begun or joined
    /// @param ticket 16 bytes to join it by
    /// @param leaseMillis how long leases last without being renewed
    /// @param proof the server's own, 32 bytes; zeros if the server has no secret
    public record Welcome(long session, Secret ticket, int leaseMillis, Secret proof) {

        public OutboundFrame frame(long request) {
            BodyWriter to = new BodyWriter(128);
            to.i64(session).bytes(ticket.bytes()).i32(leaseMillis).i32(0).bytes(proof.bytes());
            return to.reply(MessageType.AUTH, request);
        }

        public static Welcome read(BodyReader from) throws ProtocolException {
            long session = from.i64("session");
            Secret ticket = new Secret(from.bytes("ticket", Hello.TICKET_BYTES));
            int lease = from.count("lease");
            from.skip(Integer.BYTES);
            return new Welcome(session, ticket, lease, new Secret(from.bytes("proof", Proof.BYTES)));
        }
    }
}
