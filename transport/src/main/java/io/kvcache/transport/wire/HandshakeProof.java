package io.kvcache.transport.wire;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.InvalidKeyException;
import java.security.NoSuchAlgorithmException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/// What one side computes to show the other that it knows the secret: `HMAC-SHA256(secret, label ‖ client
/// nonce ‖ server nonce ‖ session as int64 ‖ tenant)`.
///
/// The labels differ, so that neither side can be made to compute the other's proof. It protects the
/// handshake, not what follows: whoever can change packets can take the connection over, so a link that
/// is not trusted needs a tunnel.
public final class HandshakeProof {

    public static final int BYTES = 32;

    private static final String CLIENT = "kvcache client v1";
    private static final String SERVER = "kvcache server v1";

    private final Secret secret;
    private final Hello hello;
    private final Challenge challenge;

    /// Of one handshake.
    public HandshakeProof(Secret secret, Hello hello, Challenge challenge) {
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
