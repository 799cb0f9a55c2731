package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.JGroupsStack.SecretSockets;
import io.kvcache.core.contract.FreePorts;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.protocols.TCP;
import org.jgroups.stack.Protocol;
import org.jgroups.util.DefaultSocketFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Members on loopback that know a secret, and strangers who do not.
@Tag("slow")
final class SecretSocketsTest {

    private final List<TestMember> members = new ArrayList<>();
    private final List<Integer> ports = FreePorts.take(2);
    private final Queue<String> warnings = new ConcurrentLinkedQueue<>();
    private final List<Logger> loggers = List.of(
            Logger.getLogger(MemberServerSocket.class.getName()), Logger.getLogger(SecretSockets.class.getName()));
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord line) {
            warnings.add(line.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    @BeforeEach
    void listen() {
        loggers.forEach(logger -> logger.addHandler(handler));
    }

    private static final String CAUSES =
            "its cluster.name is not " + TestMember.CLUSTER + ", or it does not know the secret in ";
    private static final String REFUSED = "to the port of the cluster is refused: " + CAUSES;
    private static final String TOLD_NOTHING = "is no server of this cluster, and is told nothing: " + CAUSES;

    @AfterEach
    void close() {
        members.reversed().forEach(TestMember::close);
        loggers.forEach(logger -> logger.removeHandler(handler));
    }

    private TestMember member(String name, int index, List<Integer> seeds, ClusterSecret secret) {
        TestMember member = TestMember.of(
                TestMember.info(name), TestMember.settings(TestMember.CLUSTER, ports.get(index), seeds, secret));
        members.add(member);
        return member;
    }

    private void assertAlone(TestMember own) {
        assertThat(own.names()).containsExactly("kv-0");
        assertThat(own.keeper().viewChanges()).isEqualTo(1);
    }

    /// Each lists the other, so connections are tried both ways.
    @Test
    void givenAStrangerWithAnotherSecret_whenItStarts_thenBothStayAlone() throws InterruptedException {
        TestMember own = member("kv-0", 0, ports, TestMember.SECRET);
        TestMember strange = member("kv-1", 1, ports, TestMember.newSecret());

        TestMember.start(List.of(own, strange));

        assertThat(strange.names()).containsExactly("kv-1");
        assertAlone(own);
        awaitWarning(REFUSED);
        awaitWarning(TOLD_NOTHING);
    }

    /// The secret is right, and a proof does not say which of the two is wrong.
    @Test
    void givenAServerWithAnotherClusterName_whenItStarts_thenBothSidesNameTheNameAsACause()
            throws InterruptedException {
        TestMember own = member("kv-0", 0, ports, TestMember.SECRET);
        TestMember mistyped = TestMember.of(
                TestMember.info("kv-1"), TestMember.settings("mistyped", ports.get(1), ports, TestMember.SECRET));
        members.add(mistyped);

        TestMember.start(List.of(own, mistyped));

        assertAlone(own);
        awaitWarning(REFUSED);
        awaitWarning("its cluster.name is not mistyped, or ");
    }

    private void awaitWarning(String part) {
        TestMember.await(
                () -> warnings.stream().anyMatch(line -> line.contains(part)), () -> part + " is not in " + warnings);
    }

    @Test
    void givenAStrangerThatSpeaksJGroups_whenItConnectsAndSends_thenItHearsNothing() throws Exception {
        TestMember own = member("kv-0", 0, ports, TestMember.SECRET).start();
        Queue<Message> heard = new ConcurrentLinkedQueue<>();
        JGroupsMembership.Settings settings =
                TestMember.settings(TestMember.CLUSTER, ports.getLast(), ports, TestMember.SECRET);
        List<Protocol> protocols = JGroupsStack.protocols(
                settings,
                new InetSocketAddress(InetAddress.getLoopbackAddress(), ports.getLast()),
                new SeedDiscovery(List.of(HostPort.parse("seed", "127.0.0.1:" + ports.getFirst())), true));
        ((TCP) protocols.getFirst()).setSocketFactory(new DefaultSocketFactory());
        try (JChannel stranger = new JChannel(protocols)) {
            stranger.setReceiver(new Receiver() {
                @Override
                public void receive(Message message) {
                    heard.add(message);
                }
            });
            stranger.setDiscardOwnMessages(true);
            stranger.connect(TestMember.CLUSTER);
            stranger.send(new BytesMessage(null, new byte[] {2, 1, 0, 0}));

            assertThat(stranger.getView().size()).isEqualTo(1);
            awaitWarning("is refused: it is not that of a server without cluster.tls");
        }

        assertAlone(own);
        assertThat(heard).isEmpty();
        assertThat(own.keeper().unreadableMessages()).isZero();
    }

    /// A stranger at the port of a server that does not run passes everything on to one that does.
    @Test
    void givenAStrangerBetweenTwoMembers_whenTheyProveThemselves_thenTheyRefuseEachOther() throws Exception {
        TestMember own =
                member("kv-0", 0, ports.subList(0, 1), TestMember.SECRET).start();
        try (ServerSocket between = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Thread.ofVirtual().start(() -> passAllOn(between, ports.getFirst()));

            TestMember other = member("kv-1", 1, List.of(between.getLocalPort()), TestMember.SECRET)
                    .start();

            assertThat(other.names()).containsExactly("kv-1");
        }
        assertAlone(own);
        awaitWarning(TOLD_NOTHING);
    }

    private static void passAllOn(ServerSocket between, int port) {
        while (!between.isClosed()) {
            try {
                Socket one = between.accept();
                Socket other = new Socket(InetAddress.getLoopbackAddress(), port);
                Thread.ofVirtual().start(() -> passOn(one, other));
                Thread.ofVirtual().start(() -> passOn(other, one));
            } catch (IOException closed) {
                continue; // the next one, or the end
            }
        }
    }

    private static void passOn(Socket from, Socket to) {
        try (from;
                to;
                InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream()) {
            in.transferTo(out);
        } catch (IOException closed) {
            // as one side has closed it
        }
    }

    @Test
    void givenSilentAndTalkativeConnections_whenAMemberJoins_thenItIsNotKeptWaiting() throws IOException {
        member("kv-0", 0, ports, TestMember.SECRET).start();
        List<Socket> strangers = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            Socket stranger = new Socket(InetAddress.getLoopbackAddress(), ports.getFirst());
            strangers.add(stranger);
            if (i % 2 == 0) {
                stranger.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            }
        }

        member("kv-1", 1, ports, TestMember.SECRET).start();

        TestMember.awaitOneView(members);
        for (Socket each : strangers) {
            each.close();
        }
    }
}
