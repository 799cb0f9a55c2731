package io.kvcache.transport.wire;

/// The reply to HELLO: what the server speaks, and what the client has to prove.
///
/// @param version that will be spoken
/// @param proofRequired whether a proof is asked for
/// @param capabilities bits of what the server can do: [Hello#SHARED_MEMORY], [#PUTS], [#FABRIC],
///     [#STAGING], [#STAGED_OBJECTS], [#HINTS] and [#OBJECT_HINTS]
/// @param nonce 32 random bytes
public record Challenge(int version, boolean proofRequired, long capabilities, Secret nonce) {

    /// It takes PUT and PUT_OBJECT: room, bytes and answer in one round trip.
    public static final long PUTS = 2;

    /// Its memory can be read one-sided over a fabric.
    public static final long FABRIC = 4;

    /// It has memory that clients on its host write what they put into.
    public static final long STAGING = 8;

    /// It takes PUT_OBJECT_STAGED: objects out of that memory in one round trip.
    public static final long STAGED_OBJECTS = 16;

    /// It takes hints that label and weigh blocks, and that give them a time.
    public static final long HINTS = 32;

    /// It takes HINT_OBJECTS.
    public static final long OBJECT_HINTS = 64;

    /// Whether the server has a capability.
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
