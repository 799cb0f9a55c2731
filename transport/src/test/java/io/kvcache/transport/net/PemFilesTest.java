package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.net.PemFiles.TlsFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.cert.X509Certificate;
import java.util.Base64;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PemFilesTest {

    private static final char[] NONE = {};

    /// A key of this test alone, made by `openssl genpkey`.
    private static final String PLAIN_KEY = """
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg8vOgt6/KYXM32849
            lJleyvbMzE6mrtZPjQrrcP7l/u6hRANCAASILb0L92slpxoSijUYIso6dEDI+HUI
            lUcsqcO4xnLf+j0HjowL4K7brwRN2ozoc+OqFx5y9Atx+siO50DDts6Q
            """;

    /// The same by `openssl pkcs8 -topk8`, with the password `sesame`.
    private static final String AES_KEY = """
            MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjVo97+bTspzwICCAAw
            DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEENoW+9XNuFy6Jt+cG2N32IEEgZCU
            ztpajjFg4vNWSwJMCzwzjmlz8LkoMMs/uRyfhF5IW/U/fpEGm5Q0RuzVIFF6xXr1
            BkD6MFv2oXi/ryquObdEXVnWUjlLFd7q2ouK1wVpi/KxqHLAJneRezi7maaGOvmO
            lGh6M6gv3YQLh/UaougfsRR173qmUwM7Xut/D04rcxGHhlQ1fa5G63tFTlHcLxc=
            """;

    /// The same with `-v1 PBE-SHA1-3DES`.
    private static final String DES_KEY = """
            MIGxMBwGCiqGSIb3DQEMAQMwDgQIoPdNX97aAT8CAggABIGQc2CZEuXiXgQLt1YB
            bRkLMCVHnrogOlfdPtXw+Ee9l5oDreIk9qGnIFHGBGCc0L2ylZ35nTZkmCdXrTY9
            dzveseX6LmVdVG5hBcbdHbx+d89HuJfk9quMblZXzFfQ1HQoNKYUY5Y8k/kxGoKb
            RgNkcvaZmn8xa3dPvVRf52GA6aluzI8soJXGIpThzTdDIEYN
            """;

    @TempDir
    private Path folder = Path.of("");

    private static String pem(String kind, byte[] der) {
        return "-----BEGIN " + kind + "-----\n" + Base64.getMimeEncoder().encodeToString(der) + "\n-----END " + kind
                + "-----\n";
    }

    private Path write(String name, String text) throws IOException {
        return Files.writeString(folder.resolve(name), text);
    }

    /// Short ones, where a length is to be had: they are only read.
    private static KeyPair newKeys(String algorithm) throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
        if (algorithm.equals("RSA") || algorithm.equals("DSA")) {
            generator.initialize(1024);
        }
        return generator.generateKeyPair();
    }

    @ParameterizedTest
    @ValueSource(strings = {"RSA", "EC", "Ed25519"})
    void givenAKey_whenRead_thenItIsTheSame(String algorithm) throws Exception {
        KeyPair keys = newKeys(algorithm);
        Path file = write("key", pem("PRIVATE KEY", keys.getPrivate().getEncoded()));

        assertThat(PemFiles.readKey(file, NONE)).isEqualTo(keys.getPrivate());
    }

    @ParameterizedTest
    @ValueSource(strings = {AES_KEY, DES_KEY})
    void givenAnEncryptedKey_whenReadWithItsPassword_thenItIsTheSame(String encrypted) throws Exception {
        Path plain = write("plain", "-----BEGIN PRIVATE KEY-----\n" + PLAIN_KEY + "-----END PRIVATE KEY-----\n");
        Path file = write(
                "key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n" + encrypted + "-----END ENCRYPTED PRIVATE KEY-----\n");

        assertThat(PemFiles.readKey(file, "sesame".toCharArray())).isEqualTo(PemFiles.readKey(plain, NONE));
        assertThatThrownBy(() -> PemFiles.readKey(file, "wrong".toCharArray()))
                .isInstanceOf(TlsFileException.class)
                .hasMessageContaining(file + " has no private key")
                .hasMessageContaining("or its password in password_file is wrong")
                .hasMessageNotContaining("sesame");
        assertThatThrownBy(() -> PemFiles.readKey(file, NONE)).isInstanceOf(TlsFileException.class);
    }

    @Test
    void givenAFileWithCertificatesAndAKey_whenRead_thenEachIsFound() throws Exception {
        String one = Files.readString(
                TestCertificate.make(folder, "one", "IP:127.0.0.1").pem());
        KeyPair keys = newKeys("EC");
        Path all = write(
                "all",
                "subject=CN=one\n" + one + pem("PRIVATE KEY", keys.getPrivate().getEncoded()) + one);

        List<X509Certificate> certificates = PemFiles.readCertificates(all);
        assertThat(certificates).hasSize(2);
        assertThat(certificates.getFirst().getSubjectX500Principal().getName()).isEqualTo("CN=one");
        assertThat(PemFiles.readKey(all, NONE)).isEqualTo(keys.getPrivate());
        assertThatThrownBy(() -> PemFiles.requireMatch(keys.getPrivate(), "its key", certificates.getFirst(), "all"))
                .isInstanceOf(TlsFileException.class)
                .hasMessageStartingWith("the key in its key does not belong to the certificate in all");
        KeyPair dsa = newKeys("DSA");
        assertThatCode(() -> PemFiles.requireMatch(dsa.getPrivate(), "its key", certificates.getFirst(), "all"))
                .as("an algorithm that is not checked")
                .doesNotThrowAnyException();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "text", "-----BEGIN CERTIFICATE-----\nno\n", "-----BEGIN PRIVATE KEY-----\n?\n-----END"})
    void givenAFileOfAnotherFormat_whenRead_thenTheMessageNamesItAndTheRemedy(String text) throws Exception {
        Path file = write("file", text);

        assertThatThrownBy(() -> PemFiles.readCertificates(file))
                .isInstanceOf(TlsFileException.class)
                .hasMessageContaining(file + " has no certificate in PEM");
        assertThatThrownBy(() -> PemFiles.readKey(file, NONE))
                .isInstanceOf(TlsFileException.class)
                .hasMessageContaining(file + " has no private key in PKCS#8 PEM")
                .hasMessageContaining("openssl pkcs8");
    }

    @Test
    void givenNoFile_whenRead_thenThatIsSaid() {
        Path missing = folder.resolve("missing");

        assertThatThrownBy(() -> PemFiles.readCertificates(missing))
                .hasMessage(missing + " cannot be read: it does not exist");
        assertThatThrownBy(() -> PemFiles.readKey(missing, NONE))
                .hasMessage(missing + " cannot be read: it does not exist");
    }
}
