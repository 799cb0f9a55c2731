package io.kvcache.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.junit.KvCacheServerExtension;
import io.kvcache.transport.net.TestCertificate;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/// With a server that has a certificate and requires a secret.
final class SecuredCacheTest {

    private static final String SECRET = "a secret of some length";

    @TempDir
    private static Path folder;

    private static TestCertificate certificate;
    private static KvCacheServerExtension server;

    private static ApplicationContextRunner runner() {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(SslAutoConfiguration.class, KvCacheAutoConfiguration.class))
                .withPropertyValues(
                        "kvcache.addresses=tls:" + server.addresses().transport(),
                        "kvcache.memory-bytes=16MB",
                        "kvcache.secret=" + SECRET);
    }

    @BeforeAll
    static void start() throws IOException {
        certificate = TestCertificate.make(folder, "server", "IP:127.0.0.1");
        server = KvCacheServerExtension.builder()
                .setting("transport.tls.keystore", folder.resolve("server.p12").toString())
                .setting("transport.tls.password_file", privateFile("password", "changeit"))
                .setting("transport.secret_file", privateFile("secret", SECRET))
                .build();
        server.start();
    }

    private static String privateFile(String name, String content) throws IOException {
        Path file = Files.writeString(folder.resolve(name), content + "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
        return file.toString();
    }

    @AfterAll
    static void stop() {
        server.stop();
    }

    @Test
    void givenTrustAndSecret_whenStarted_thenTheCacheIsUsed() {
        runner().withPropertyValues("kvcache.trust=" + certificate.pem())
                .run(context -> assertThat(TestBlocks.put(context.getBean(KvCache.class)))
                        .isEqualTo(4));
    }

    @Test
    void givenAnSslBundle_whenStarted_thenTheCacheIsUsed() {
        runner().withPropertyValues(
                        "kvcache.ssl-bundle=cache",
                        "spring.ssl.bundle.pem.cache.truststore.certificate=" + certificate.pem())
                .run(context -> assertThat(TestBlocks.put(context.getBean(KvCache.class)))
                        .isEqualTo(4));
    }

    @Test
    void givenAnUnknownSslBundle_whenStarted_thenTheErrorNamesThoseThereAre() {
        runner().withPropertyValues(
                        "kvcache.ssl-bundle=other",
                        "spring.ssl.bundle.pem.cache.truststore.certificate=" + certificate.pem())
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("kvcache.ssl-bundle")
                        .hasMessageContaining("there is no such bundle; allowed: cache"));
    }

    @Test
    void givenAnotherSecret_whenStarted_thenTheFailureSaysThatTheServerRejectsIt() {
        runner().withPropertyValues("kvcache.trust=" + certificate.pem(), "kvcache.secret=wrong-0123456789-wrong")
                .run(context -> assertThat(context)
                        .getFailure()
                        .cause()
                        .cause()
                        .isInstanceOf(CacheStartupException.class)
                        .hasMessageContaining(server.addresses().transport())
                        .hasMessageContaining("the proof is wrong")
                        .hasMessageNotContaining("wrong-0123456789-wrong"));
    }

    @Test
    void givenTrustWithoutTls_whenStarted_thenTheErrorSaysThatTheAddressHasNone() {
        runner().withPropertyValues("kvcache.addresses=127.0.0.1:1", "kvcache.trust=" + certificate.pem())
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("kvcache.trust")
                        .hasMessageContaining("the address has no TLS"));
    }
}
