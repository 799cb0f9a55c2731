package io.kvcache.cluster;

import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.ViewCodec;
import java.io.ByteArrayInputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

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

    /// Hellos as bytes, signed if the cluster has certificates: `u16 bytes` of the hello, the hello, `u8
    /// certificates`, and for each `u16 bytes` and its DER, `u16 bytes` of the signature, the signature.
    ///
    /// The signature covers the cluster's name and the address of the member too. So no server can say the
    /// hello of one member as another, nor in another cluster.
    static final class HelloCodec {

        private static final int MAX_CERTIFICATES = 8;

        private final String cluster;
        private final @Nullable ClusterTls tls;

        HelloCodec(String cluster, @Nullable ClusterTls tls) {
            this.cluster = cluster;
            this.tls = tls;
        }

        /// @param member whose hello it is
        void write(MemberHello hello, byte[] member, BodyWriter body) {
            byte[] told = hello.toBytes();
            body.u16(told.length).bytes(told);
            if (tls == null) {
                body.u8(0);
                return;
            }
            try {
                ClusterTls.Signed signed = tls.sign(statement(member, told));
                body.u8(signed.chain().size());
                for (X509Certificate each : signed.chain()) {
                    body.u16(each.getEncoded().length).bytes(each.getEncoded());
                }
                body.u16(signed.signature().length).bytes(signed.signature());
            } catch (GeneralSecurityException broken) {
                throw new IllegalStateException("the key of the cluster's certificate cannot sign", broken);
            }
        }

        /// @throws ProtocolException when a field is out of range
        /// @throws GeneralSecurityException when the member has no certificate for the name that it tells
        MemberHello read(BodyReader body, byte[] member) throws ProtocolException, GeneralSecurityException {
            byte[] told = body.bytes("hello", body.u16("hello bytes"));
            MemberHello hello = MemberHello.read(ByteBuffer.wrap(told));
            if (tls != null) {
                NodeInfo node = hello.node();
                tls.verify(node.name(), statement(member, told), readSignature(body));
            }
            return hello;
        }

        private static ClusterTls.Signed readSignature(BodyReader body)
                throws ProtocolException, GeneralSecurityException {
            int count = body.u8("certificates");
            if (count < 1 || count > MAX_CERTIFICATES) {
                throw new ProtocolException("certificates = %s; allowed: 1 to %s".formatted(count, MAX_CERTIFICATES));
            }
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            List<X509Certificate> chain = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                byte[] der = body.bytes("certificate", body.u16("certificate bytes"));
                chain.add((X509Certificate) factory.generateCertificate(new ByteArrayInputStream(der)));
            }
            return new ClusterTls.Signed(chain, body.bytes("signature", body.u16("signature bytes")));
        }

        private byte[] statement(byte[] member, byte[] told) {
            byte[] prefix = ("KVCache member of " + cluster + '\0').getBytes(StandardCharsets.UTF_8);
            return ByteBuffer.allocate(prefix.length + member.length + told.length)
                    .put(prefix)
                    .put(member)
                    .put(told)
                    .array();
        }
    }
}
