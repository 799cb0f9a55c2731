package io.kvcache.cluster;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;

/// Signs certificates for servers. It writes their few fields itself, as a run of keytool takes a second or more.
public final class TestAuthority {

    /// Tags of DER.
    private static final int SEQUENCE = 0x30;

    private static final int SET = 0x31;
    private static final int INTEGER = 0x02;
    private static final int BIT_STRING = 0x03;
    private static final int OCTET_STRING = 0x04;
    private static final int UTF8 = 0x0C;
    private static final int TIME = 0x17;
    private static final int CONTEXT = 0xA0;
    private static final int DNS_NAME = 0x82;

    /// Object identifiers, encoded.
    private static final byte[] ECDSA_WITH_SHA256 = bytes("06082A8648CE3D040302");

    private static final byte[] COMMON_NAME = bytes("0603550403");
    private static final byte[] BASIC_CONSTRAINTS = bytes("0603551D13");
    private static final byte[] ALTERNATIVE_NAMES = bytes("0603551D11");

    /// Of an authority, marked as critical.
    private static final byte[] IS_AUTHORITY = bytes("0101FF04053003" + "0101FF");

    private static final Duration VALIDITY = Duration.ofDays(2);

    private final Path folder;
    private final String name;
    private final KeyPair keys = newKeys();

    /// @param folder of all files
    public TestAuthority(Path folder, String name) throws IOException, GeneralSecurityException {
        this.folder = folder;
        this.name = name;
        byte[] authority = der(SEQUENCE, BASIC_CONSTRAINTS, IS_AUTHORITY);
        writePem(file("authority"), "CERTIFICATE", certificate(name, keys, authority, VALIDITY));
    }

    /// Issues a certificate with a DNS name, and reads it together with this authority.
    public ClusterTls issue(String commonName, String dnsName) throws IOException, GeneralSecurityException {
        return issue(commonName, dnsName, VALIDITY);
    }

    /// @param validity from now on; negative for a certificate that has ended
    ClusterTls issue(String commonName, String dnsName, Duration validity)
            throws IOException, GeneralSecurityException {
        KeyPair own = newKeys();
        byte[] names = der(SEQUENCE, der(DNS_NAME, dnsName.getBytes(StandardCharsets.US_ASCII)));
        byte[] extension = der(SEQUENCE, ALTERNATIVE_NAMES, der(OCTET_STRING, names));
        writePem(file(commonName + ".pem"), "CERTIFICATE", certificate(commonName, own, extension, validity));
        writePem(file(commonName + ".key"), "PRIVATE KEY", own.getPrivate().getEncoded());
        return ClusterTls.open(file(commonName + ".pem"), file(commonName + ".key"), file("authority"));
    }

    /// Returns the file of a certificate, `kv-0.pem`, of its key, `kv-0.key`, or of the `authority`.
    public Path file(String which) {
        return folder.resolve(name + "-" + which);
    }

    private byte[] certificate(String subject, KeyPair own, byte[] extension, Duration validity)
            throws GeneralSecurityException {
        byte[] algorithm = der(SEQUENCE, ECDSA_WITH_SHA256);
        Instant now = Instant.now();
        byte[] content = der(
                SEQUENCE,
                der(CONTEXT, der(INTEGER, new byte[] {2})), // version 3
                der(INTEGER, new byte[] {1, (byte) new SecureRandom().nextInt()}),
                algorithm,
                nameOf(name),
                der(SEQUENCE, time(now.minus(Duration.ofHours(1))), time(now.plus(validity))),
                nameOf(subject),
                own.getPublic().getEncoded(),
                der(CONTEXT | 3, der(SEQUENCE, extension)));
        Signature signature = Signature.getInstance("SHA256withECDSA");
        signature.initSign(keys.getPrivate());
        signature.update(content);
        return der(SEQUENCE, content, algorithm, der(BIT_STRING, new byte[1], signature.sign()));
    }

    private static byte[] nameOf(String commonName) {
        byte[] text = der(UTF8, commonName.getBytes(StandardCharsets.UTF_8));
        return der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, text)));
    }

    private static byte[] time(Instant moment) {
        String text = DateTimeFormatter.ofPattern("yyMMddHHmmss'Z'")
                .withZone(ZoneOffset.UTC)
                .format(moment);
        return der(TIME, text.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] der(int tag, byte[]... parts) {
        String content = "";
        for (byte[] part : parts) {
            content += HexFormat.of().formatHex(part);
        }
        int length = content.length() / 2;
        String size = length < 0x80 ? "%02x" : length < 0x100 ? "81%02x" : "82%04x"; // the shortest form
        return bytes("%02x".formatted(tag) + size.formatted(length) + content);
    }

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex);
    }

    private static KeyPair newKeys() throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        return generator.generateKeyPair();
    }

    private static void writePem(Path file, String what, byte[] encoded) throws IOException {
        String body = Base64.getMimeEncoder().encodeToString(encoded);
        Files.writeString(file, "-----BEGIN %s-----\n%s\n-----END %s-----\n".formatted(what, body, what));
    }
}
