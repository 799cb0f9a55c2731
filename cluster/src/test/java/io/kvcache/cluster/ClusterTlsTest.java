package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.FreePorts;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Members with certificates, and strangers.
@Tag("slow")
final class ClusterTlsTest {

    @TempDir
    static Path folder;

    private static TestAuthority authority;
    private static ClusterTls kv0;
    private static ClusterTls kv1;

    private final List<TestMember> members = new ArrayList<>();
    private final List<Integer> ports = FreePorts.take(2);

    @BeforeAll
    static void makeCertificates() throws Exception {
        authority = new TestAuthority(folder, "own");
        kv0 = authority.issue("kv-0", "other.example");
        kv1 = authority.issue("certificate-1", "kv-1");
    }

    @AfterEach
    void close() {
        members.reversed().forEach(TestMember::close);
    }

    private TestMember member(String name, int index, ClusterTls tls) {
        TestMember member = TestMember.of(
                TestMember.info(name), TestMember.settings(TestMember.CLUSTER, ports.get(index), ports, tls));
        members.add(member);
        return member;
    }

    @Test
    void givenCertificatesOfOneAuthority_whenBothStart_thenTheyFormOneView() {
        member("kv-0", 0, kv0).start();
        member("kv-1", 1, kv1).start();

        TestMember.awaitOneView(members);
    }

    @Test
    void givenACertificateForAnotherNode_whenItStarts_thenItIsRefused() {
        TestMember misnamed = member("kv-7", 0, kv0);

        assertThatThrownBy(misnamed::start)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is for [kv-0, other.example]; allowed for node 'kv-7'");
    }

    @Test
    void givenAnotherAuthorityOrNone_whenStrangersStart_thenTheyStayAlone() throws Exception {
        TestMember own = member("kv-0", 0, kv0).start();
        TestMember strange = member("kv-1", 1, new TestAuthority(folder, "strangers").issue("kv-1", "kv-1"));
        TestMember plain = TestMember.of("kv-2", FreePorts.take(), ports);
        members.add(plain);

        Queue<String> warnings = new ConcurrentLinkedQueue<>();
        Logger logger = Logger.getLogger(MemberServerSocket.class.getName());
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord line) {
                warnings.add(line.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        logger.addHandler(handler);
        try {
            TestMember.start(List.of(strange, plain));
        } finally {
            logger.removeHandler(handler);
        }

        assertThat(warnings).anyMatch(line -> line.contains("to the port of the cluster is refused: "));
        assertThat(strange.names()).containsExactly("kv-1");
        assertThat(plain.names()).containsExactly("kv-2");
        assertThat(own.names()).containsExactly("kv-0");
        assertThat(own.keeper().viewChanges()).isEqualTo(1);
    }

    @Test
    @Tag("nightly")
    void givenSilentConnections_whenAMemberJoins_thenItIsNotKeptWaiting() throws IOException {
        member("kv-0", 0, kv0).start();
        List<Socket> silent = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            silent.add(new Socket(InetAddress.getLoopbackAddress(), ports.getFirst()));
        }

        member("kv-1", 1, kv1).start();

        TestMember.awaitOneView(members);
        for (Socket each : silent) {
            each.close();
        }
    }

    @Test
    void givenANewCertificate_whenItIsLoaded_thenTheNextMemberSeesIt() throws Exception {
        TestAuthority renewed = new TestAuthority(folder, "renewed");
        ClusterTls own = new TestAuthority(folder, "earlier").issue("kv-2", "kv-2");
        member("kv-2", 0, own).start();
        ClusterTls next = renewed.issue("kv-2", "kv-2");
        for (int i = 0; i < own.files().size(); i++) {
            Files.copy(next.files().get(i), own.files().get(i), StandardCopyOption.REPLACE_EXISTING);
        }

        own.reload();

        member("kv-1", 1, renewed.issue("kv-1", "kv-1")).start();

        TestMember.awaitOneView(members);
    }

    @Test
    void givenAKeyOfAnotherCertificate_whenItIsRead_thenTheErrorNamesBoth() {
        assertThatThrownBy(() -> ClusterTls.open(
                        authority.file("kv-0.pem"), authority.file("certificate-1.key"), authority.file("authority")))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("certificate-1.key does not belong to the certificate in")
                .hasMessageContaining("kv-0.pem");
    }

    @Test
    void givenACertificateThatOthersWouldRefuse_whenItIsRead_thenTheErrorSaysWhy() throws Exception {
        TestAuthority other = new TestAuthority(folder, "other");

        assertThatThrownBy(() -> ClusterTls.open(
                        authority.file("kv-0.pem"), authority.file("kv-0.key"), other.file("authority")))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("own-kv-0.pem is valid from ")
                .hasMessageContaining("and that an authority in %s has signed".formatted(other.file("authority")));
        assertThatThrownBy(() -> authority.issue("ended", "ended", Duration.ofMinutes(-1)))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("other servers would refuse it: ")
                .hasMessageContaining("allowed: one that is valid now");
    }

    @Test
    void givenASignedStatement_whenAnotherNodeSaysIt_thenItIsRefused() throws Exception {
        byte[] statement = {1, 2, 3};
        ClusterTls.Signed signed = kv0.sign(statement);

        kv1.verify("kv-0", statement, signed);

        assertThatThrownBy(() -> kv1.verify("kv-1", statement, signed))
                .hasMessage("its certificate is for [kv-0, other.example]");
        assertThatThrownBy(() -> kv1.verify("kv-0", new byte[] {1, 2, 4}, signed))
                .hasMessage("its signature is wrong");
    }
}
