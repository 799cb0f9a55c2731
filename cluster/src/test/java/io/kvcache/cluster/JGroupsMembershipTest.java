package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.FreePorts;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.wire.BodyWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Members in one JVM, over loopback.
@Tag("slow")
final class JGroupsMembershipTest {

    private final List<TestMember> members = new ArrayList<>();

    @AfterEach
    void close() {
        members.reversed().forEach(TestMember::close);
    }

    private TestMember member(String name, int port, List<Integer> seeds) {
        return add(TestMember.of(name, port, seeds));
    }

    private TestMember add(TestMember member) {
        members.add(member);
        return member;
    }

    @Test
    void givenFive_whenAllStartAtOnce_thenTheyFormOneView() throws InterruptedException {
        List<Integer> ports = FreePorts.take(5);
        IntStream.range(0, 5).forEach(i -> member("kv-" + i, ports.get(i), ports.subList(0, 3)));

        TestMember.start(members);

        TestMember.awaitOneView(members);
        assertThat(members).allMatch(member -> member.keeper().flaps() == 0);
    }

    @Test
    void givenTwo_whenOneChangesItsState_thenBothViewsHaveIt() {
        List<Integer> ports = FreePorts.take(2);
        TestMember one = member("one", ports.getFirst(), ports).start();
        TestMember other = member("other", ports.getLast(), ports).start();
        TestMember.awaitOneView(members);

        other.keeper().setState(NodeState.DRAINING);

        for (TestMember member : members) {
            TestMember.await(() -> stateOf("other", member) == NodeState.DRAINING, () -> member + " has not heard it");
        }
        assertThat(one.keeper().view().serving()).extracting(NodeInfo::name).containsExactly("one");
    }

    private static NodeState stateOf(String name, TestMember member) {
        return Objects.requireNonNull(member.keeper().view().node(name)).state();
    }

    @Test
    void givenTwo_whenOneBroadcasts_thenTheOtherHasTheSameBytes() {
        List<Integer> ports = FreePorts.take(2);
        TestMember one = member("one", ports.getFirst(), ports).start();
        TestMember other = member("other", ports.getLast(), ports).start();
        TestMember.awaitOneView(members);
        List<byte[]> sent = IntStream.of(0, 1, 1_000, Membership.MAX_MESSAGE_BYTES - 1)
                .mapToObj(JGroupsMembershipTest::pattern)
                .toList();
        List<byte[]> heard = new CopyOnWriteArrayList<>();
        other.keeper().listenToMessages(9, (from, body) -> heard.add(body.rest()));

        sent.forEach(each ->
                one.keeper().broadcast(new BodyWriter().u8(9).bytes(each).toBytes()));

        TestMember.await(() -> heard.size() == sent.size(), () -> heard.size() + " messages of " + sent.size());
        assertThat(heard).usingElementComparator(Arrays::compare).containsExactlyElementsOf(sent);
    }

    @Test
    void givenTwo_whenOneSendsWhatCannotBeRead_thenTheOtherCountsIt() {
        List<Integer> ports = FreePorts.take(2);
        TestMember one = member("one", ports.getFirst(), ports).start();
        TestMember other = member("other", ports.getLast(), ports).start();
        TestMember.awaitOneView(members);

        one.keeper().broadcast(new byte[] {9, 1, 2});
        one.keeper().broadcast(new byte[0]);

        TestMember.await(() -> other.keeper().unreadableMessages() == 2, () -> "messages are not counted");
        assertThat(one.keeper().unreadableMessages()).isZero();
    }

    /// As a server that is stopped does: the system accepts connections to its port, and no process answers.
    @Test
    void givenASeedThatStandsStill_whenTimePasses_thenTheOthersKeepOneView() throws Exception {
        List<Integer> ports = FreePorts.take(3);
        try (ServerSocket still = new ServerSocket(ports.getLast(), 128, InetAddress.ofLiteral("127.0.0.1"))) {
            TestMember.start(List.of(member("one", ports.getFirst(), ports), member("other", ports.get(1), ports)));
            TestMember.awaitOneView(members);
            List<Long> before = views();

            Thread.sleep(TestMember.FAILURE_AFTER.multipliedBy(20));

            assertThat(views()).as("views of each").isEqualTo(before);
            assertThat(members).allMatch(member -> member.keeper().mergeCount() == 0);
            assertThat(still.isClosed()).isFalse();
        }
    }

    /// What waits for the stopped one must not hold up the view without it.
    @Test
    void givenAProcessThatIsStopped_whenMegabytesWaitForIt_thenTheOthersGoOnWithoutIt(@TempDir Path folder)
            throws Exception {
        List<Integer> ports = FreePorts.take(3);
        ClusterSecret secret = ClusterSecret.open(folder.resolve("cluster.secret"));
        for (String name : List.of("one", "other")) {
            add(TestMember.of(
                            TestMember.info(name),
                            TestMember.settings(TestMember.CLUSTER, ports.get(members.size()), ports, secret)))
                    .start();
        }
        List<String> seeds = ports.stream().map(port -> "127.0.0.1:" + port).toList();
        try (MemberProcess stopped =
                MemberProcess.start(List.of(), "still", seeds.getLast(), seeds, TestMember.FAILURE_AFTER, secret)) {
            TestMember.awaitNames(members, List.of("one", "other", "still"));
            AtomicInteger heard = new AtomicInteger();
            members.getLast().keeper().listenToMessages(9, (_, _) -> heard.incrementAndGet());
            stopped.signal("STOP");
            byte[] message = new byte[Membership.MAX_MESSAGE_BYTES];
            message[0] = 9;

            for (int i = 0; i < 200; i++) { // waits for the stopped one while it is in the view
                members.getFirst().keeper().broadcast(message);
            }

            TestMember.awaitNames(members, List.of("one", "other"));
            TestMember.await(() -> heard.get() == 200, () -> heard + " messages of 200");
        }
    }

    private List<Long> views() {
        return members.stream().map(member -> member.keeper().viewChanges()).toList();
    }

    private static byte[] pattern(int length) {
        byte[] bytes = new byte[length];
        new Random(length).nextBytes(bytes);
        return bytes;
    }

    @Test
    void givenTwo_whenOneLeaves_thenTheOtherIsAlone() {
        List<Integer> ports = FreePorts.take(2);
        TestMember one = member("one", ports.getFirst(), ports).start();
        TestMember other = member("other", ports.getLast(), ports).start();
        TestMember.awaitOneView(members);

        other.close();

        TestMember.awaitNames(List.of(one), List.of("one"));
        assertThat(one.keeper().flaps()).isZero();
    }

    /// With the default failure timeout. A join that gets no answer within its time ends alone, and a machine under
    /// load is late.
    @Test
    @Tag("nightly")
    void givenALiveNode_whenAnotherHasItsName_thenItIsRefused() {
        List<Integer> ports = FreePorts.take(2);
        List<String> seeds = List.of("127.0.0.1:" + ports.getFirst());
        TestMember one = add(
                TestMember.of(TestMember.info("same", 1), settings("127.0.0.1:" + ports.getFirst(), seeds, "", 3_000)));
        one.start();
        TestMember other = add(
                TestMember.of(TestMember.info("same", 2), settings("127.0.0.1:" + ports.getLast(), seeds, "", 3_000)));

        assertThatThrownBy(other::start)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("node 'same' is in cluster 'test-kv' already, with address same.example:7410");

        assertThat(one.keeper().view().nodes()).containsExactly(one.info());
    }

    @Test
    void givenTwoClusters_whenOneListsTheOther_thenTheyStayApart() {
        List<Integer> ports = FreePorts.take(2);
        TestMember one = member("one", ports.getFirst(), ports).start();
        TestMember other = add(TestMember.of(
                TestMember.info("other"), TestMember.settings("another", ports.getLast(), ports, TestMember.SECRET)));

        other.start();

        assertThat(other.names()).containsExactly("other");
        assertThat(one.names()).containsExactly("one");
    }

    @Test
    @Tag("nightly")
    void givenAMemberThatHasLeft_whenAnotherTakesItsPort_thenPortAndThreadsAreFree() throws InterruptedException {
        List<Integer> ports = FreePorts.take(1);
        member("one", ports.getFirst(), ports).start().close(); // what JGroups starts once a JVM stays
        Set<Thread> before = Thread.getAllStackTraces().keySet();

        member("other", ports.getFirst(), ports).start().close();

        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (!before.contains(thread)) {
                thread.join(Duration.ofSeconds(10));
                assertThat(thread.isAlive()).as(thread.getName()).isFalse();
            }
        }
    }

    @Test
    void givenATakenPort_whenAMemberStarts_thenTheErrorNamesIt() {
        List<Integer> ports = FreePorts.take(1);
        member("one", ports.getFirst(), ports).start();
        TestMember other = member("other", ports.getFirst(), ports);

        assertThatThrownBy(other::start)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageStartingWith("cannot listen at 127.0.0.1:" + ports.getFirst() + ": the port is taken");
    }

    @Test
    void givenAnAddressOfOtherMachines_whenThereIsNoTls_thenItIsRefused() {
        assertThatThrownBy(() -> new JGroupsMembership(settings("192.0.2.1:7421", List.of(), "", 3_000)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("listen = 192.0.2.1:7421 is reachable from other machines");
        assertThatThrownBy(() -> new JGroupsMembership(settings("0.0.0.0:7421", List.of(), "", 3_000)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("listen = 0.0.0.0:7421 stands for all addresses");
    }

    @Test
    void givenSettingsOutOfRange_whenTheyAreMade_thenTheErrorSaysWhatIsAllowed() {
        assertThatThrownBy(() -> settings("127.0.0.1:7421", List.of(), "", 999))
                .hasMessage("failure_after = 999 ms is out of range; allowed: 1s to 60s");
        assertThatThrownBy(() -> settings("127.0.0.1", List.of(), "", 3_000))
                .hasMessageStartingWith("listen = '127.0.0.1'");
        assertThatThrownBy(() -> settings("127.0.0.1:1", List.of("::1"), "", 3_000))
                .hasMessageStartingWith("seed = '::1'");
        assertThatThrownBy(() -> settings("127.0.0.1:1", List.of("a:1"), "b:1", 3_000))
                .hasMessage("both seeds and dns are given; allowed: one of them");
        assertThat(settings("[::1]:7421", List.of("[fd00::5]:7421"), "", 60_000).listen())
                .isEqualTo("[::1]:7421");
    }

    private static JGroupsMembership.Settings settings(String listen, List<String> seeds, String dns, long millis) {
        return new JGroupsMembership.Settings(
                "test-kv", listen, seeds, dns, TestMember.SECRET, Duration.ofMillis(millis));
    }

    @Test
    void givenANameOfTheAddresses_whenTwoStart_thenTheyFormOneView() {
        int port = FreePorts.take();
        for (String address : List.of("127.0.0.1", "127.0.0.2")) {
            add(TestMember.of(
                            TestMember.info(address),
                            new JGroupsMembership.Settings(
                                    "test-kv",
                                    address + ":" + port,
                                    List.of(),
                                    "localhost:" + port,
                                    TestMember.SECRET,
                                    TestMember.FAILURE_AFTER)))
                    .start();
        }

        TestMember.awaitOneView(members);
    }
}
