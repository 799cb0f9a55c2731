package io.kvcache.transport.wire;

/// The first frame of a connection: who is there, and what for.
///
/// @param version of the protocol that the client speaks at most
/// @param session 0 to begin one, else the one to join
/// @param capabilities bits of what the client can do: [#SHARED_MEMORY]
/// @param nonce 32 random bytes
/// @param ticket 16 bytes that the session was given; zeros to begin one
/// @param leaseMillis how long leases last without being renewed, as far as the server allows; 0 leaves
///     it to the server
/// @param tenant in whose name, or empty
public record Hello(
        int version, long session, long capabilities, Secret nonce, Secret ticket, int leaseMillis, String tenant) {

    /// The only version so far.
    public static final int VERSION = 1;

    /// Capability: maps memory that processes on its host share, or has such memory.
    public static final long SHARED_MEMORY = 1;

    public static final int NONCE_BYTES = 32;
    public static final int TICKET_BYTES = 16;

    /// Whether a session begins; else a connection joins one.
    public boolean startsSession() {
        return session == 0;
    }

    public OutboundFrame frame(long request, long deadlineNanos) {
        BodyWriter to = new BodyWriter(128);
        to.u16(version).u16(0).i32(leaseMillis).i64(session).i64(capabilities);
        to.bytes(nonce.bytes()).bytes(ticket.bytes()).text(tenant);
        return to.request(MessageType.HELLO, request, deadlineNanos);
    }

    public static Hello read(BodyReader from) throws ProtocolException {
        int version = from.u16("version");
        int lease = from.skip(Short.BYTES).count("lease");
        long session = from.i64("session");
        long capabilities = from.i64("capabilities");
        Secret nonce = new Secret(from.bytes("nonce", NONCE_BYTES));
        Secret ticket = new Secret(from.bytes("ticket", TICKET_BYTES));
        return new Hello(version, session, capabilities, nonce, ticket, lease, from.text("tenant"));
    }
}
