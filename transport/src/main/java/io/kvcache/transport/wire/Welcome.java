package io.kvcache.transport.wire;

/// The reply to AUTH: the connection may be used.
///
/// @param session that was begun or joined
/// @param ticket 16 bytes to join it by
/// @param leaseMillis how long leases last without being renewed
/// @param proof the server's own, 32 bytes; zeros where there is no secret
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
        return new Welcome(session, ticket, lease, new Secret(from.bytes("proof", HandshakeProof.BYTES)));
    }
}
