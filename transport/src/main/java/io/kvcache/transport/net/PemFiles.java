package io.kvcache.transport.net;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.EncryptedPrivateKeyInfo;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import org.jspecify.annotations.Nullable;

/// Certificates and private keys in PEM, and whether they belong together. Other parts of a file are left out, so
/// one file may have both.
public final class PemFiles {

    /// How a key signs, by its algorithm.
    private static final Map<String, String> SIGNATURES =
            Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA", "EdDSA", "EdDSA");

    private static final Pattern CERTIFICATE = Pattern.compile("-----BEGIN (?:X509 )?CERTIFICATE-----([^-]*)-----END");

    private static final Pattern KEY = Pattern.compile("-----BEGIN (ENCRYPTED )?PRIVATE KEY-----([^-]*)-----END");

    private PemFiles() {}

    /// A file that cannot be used. The message names it, says what to do, and shows nothing secret.
    public static final class TlsFileException extends IOException {

        private static final long serialVersionUID = 1;

        public TlsFileException(String message, @Nullable Exception cause) {
            super(message, cause);
        }
    }

    /// Reads all certificates of a file, in their order: at least one.
    ///
    /// @throws TlsFileException when it cannot be read, or has none
    public static List<X509Certificate> readCertificates(Path file) throws TlsFileException {
        List<X509Certificate> all = new ArrayList<>();
        try {
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            Matcher each = CERTIFICATE.matcher(read(file));
            while (each.find()) {
                all.add((X509Certificate) factory.generateCertificate(new ByteArrayInputStream(decode(each.group(1)))));
            }
            if (!all.isEmpty()) {
                return all;
            }
            throw new CertificateException("none");
        } catch (CertificateException | IllegalArgumentException malformed) {
            throw new TlsFileException(
                    file + " has no certificate in PEM (-----BEGIN CERTIFICATE-----); name a file with one, and its"
                            + " chain behind it",
                    malformed);
        }
    }

    /// Reads the first private key of a file.
    ///
    /// @param password of an encrypted one; empty for none
    /// @throws TlsFileException when it cannot be read, has none, or the password is wrong
    public static PrivateKey readKey(Path file, char[] password) throws TlsFileException {
        try {
            Matcher found = KEY.matcher(read(file));
            if (found.find()) {
                byte[] der = decode(found.group(2));
                return keyOf(found.group(1) == null ? new PKCS8EncodedKeySpec(der) : decrypt(der, password));
            }
            throw new InvalidKeySpecException("none");
        } catch (GeneralSecurityException | IOException | IllegalArgumentException malformed) {
            if (malformed instanceof TlsFileException unreadable) {
                throw unreadable;
            }
            throw new TlsFileException(
                    file + " has no private key in PKCS#8 PEM (-----BEGIN PRIVATE KEY-----) of RSA, EC or Ed25519"
                            + (password.length == 0 ? "" : ", or its password in password_file is wrong")
                            + "; convert it: openssl pkcs8 -topk8 -nocrypt -in " + file + " -out key.pem",
                    malformed);
        }
    }

    private static String read(Path file) throws TlsFileException {
        try {
            return Files.readString(file, StandardCharsets.ISO_8859_1); // takes any bytes
        } catch (NoSuchFileException missing) {
            throw new TlsFileException(file + " cannot be read: it does not exist", missing);
        } catch (IOException unreadable) {
            throw new TlsFileException(
                    file + " cannot be read: "
                            + (Files.isReadable(file) ? unreadable.getMessage() : "permission denied"),
                    unreadable);
        }
    }

    private static byte[] decode(String base64) {
        return Base64.getMimeDecoder().decode(base64);
    }

    private static PrivateKey keyOf(PKCS8EncodedKeySpec encoded) throws GeneralSecurityException {
        for (String algorithm : SIGNATURES.keySet()) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
            } catch (InvalidKeySpecException other) {
                // a key of another algorithm
            }
        }
        throw new InvalidKeySpecException("none of " + SIGNATURES.keySet());
    }

    private static PKCS8EncodedKeySpec decrypt(byte[] der, char[] password)
            throws GeneralSecurityException, IOException {
        EncryptedPrivateKeyInfo encrypted = new EncryptedPrivateKeyInfo(der);
        PBEKeySpec secret = new PBEKeySpec(password);
        try {
            return encrypted.getKeySpec(
                    SecretKeyFactory.getInstance(encrypted.getAlgName()).generateSecret(secret));
        } finally {
            secret.clearPassword();
        }
    }

    /// Returns how keys of an algorithm sign.
    ///
    /// @throws GeneralSecurityException for a key of another algorithm
    public static String signatureAlgorithm(String keyAlgorithm) throws GeneralSecurityException {
        String signature = SIGNATURES.get(keyAlgorithm);
        if (signature == null) {
            throw new GeneralSecurityException("a key of algorithm %s cannot be used; allowed: %s"
                    .formatted(
                            keyAlgorithm, SIGNATURES.keySet().stream().sorted().toList()));
        }
        return signature;
    }

    /// Checks a key against its certificate by a signature. Otherwise each client would fail in its handshake. Keys
    /// of algorithms other than RSA, EC and Ed25519, which a keystore may have, are not checked.
    ///
    /// @param keyName file of the key, for the message
    /// @param certificateName file of the certificate
    /// @throws TlsFileException when they do not belong together
    public static void requireMatch(PrivateKey key, String keyName, Certificate certificate, String certificateName)
            throws TlsFileException, GeneralSecurityException {
        PublicKey certified = certificate.getPublicKey();
        if (!SIGNATURES.keySet().containsAll(List.of(key.getAlgorithm(), certified.getAlgorithm()))) {
            return;
        }
        if (!certified.getAlgorithm().equals(key.getAlgorithm()) || !verifies(key, certified)) {
            throw new TlsFileException(
                    "the key in " + keyName + " does not belong to the certificate in " + certificateName
                            + "; give the key that the certificate was made for, the server's own certificate first",
                    null);
        }
    }

    private static boolean verifies(PrivateKey key, PublicKey certified) throws GeneralSecurityException {
        byte[] text = {1, 2, 3};
        Signature signature = Signature.getInstance(signatureAlgorithm(key.getAlgorithm()));
        signature.initSign(key);
        signature.update(text);
        byte[] signed = signature.sign();
        signature.initVerify(certified);
        signature.update(text);
        try {
            return signature.verify(signed);
        } catch (SignatureException other) {
            return false; // a key of another length
        }
    }
}
