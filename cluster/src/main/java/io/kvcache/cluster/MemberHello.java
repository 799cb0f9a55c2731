package io.kvcache.cluster;

import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.ViewCodec;
import java.nio.ByteBuffer;

/// What a member of the group tells the others about its server.
///
/// As bytes: `u8 settled, i64 revision`, the server as in [ViewCodec], `text secret`. A later version may add fields
/// at the end.
///
/// @param settled whether it has found out that no other server has its name. Until then it is in no view
/// @param revision grows with each change at the member; of two, the higher one holds
/// @param secret see [Membership#ownSecret]
record MemberHello(NodeInfo node, boolean settled, long revision, String secret) {

    byte[] toBytes() {
        BodyWriter body = new BodyWriter(256).u8(settled ? 1 : 0).i64(revision);
        ViewCodec.write(node, body);
        return body.text(secret).toBytes();
    }

    /// Without the secret.
    @Override
    public String toString() {
        return "MemberHello[" + node + ", settled=" + settled + ", revision=" + revision + "]";
    }

    /// @throws ProtocolException when a field is out of range
    static MemberHello read(ByteBuffer bytes) throws ProtocolException {
        BodyReader body = new BodyReader(bytes);
        boolean settled = body.u8("settled") == 1;
        long revision = body.i64("revision");
        return new MemberHello(ViewCodec.readNode(body), settled, revision, body.text("secret"));
    }
}
