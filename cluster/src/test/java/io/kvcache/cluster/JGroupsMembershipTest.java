package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Members in one JVM, over loopback.
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
        List<Integer> ports = TestMember.freePorts(5);
        IntStream.range(0, 5).forEach(i -> member("kv-" + i, ports.get(i), ports.subList(0, 3)));

        TestMember.start(members);

        TestMember.awaitOneView(members);
        assertThat(members).allMatch(member -> member.keeper().flaps() == 0);
    }

    @Test
    void givenTwo_whenOneChangesItsState_thenBothViewsHaveIt() {
        List<Integer> ports = TestMember.freePorts(2);
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
    void givenTwo_whenOneLeaves_thenTheOtherIsAlone() {
        List<Integer> ports = TestMember.freePorts(2);
        TestMember one = member("one", ports.getFirst(), ports).start();
        TestMember other = member("other", ports.getLast(), ports).start();
        TestMember.awaitOneView(members);

        other.close();

        TestMember.awaitNames(List.of(one), List.of("one"));
        assertThat(one.keeper().flaps()).isZero();
    }

    @Test
    void givenALiveNode_whenAnotherHasItsName_thenItIsRefused() {
        List<Integer> ports = TestMember.freePorts(2);
        TestMember one = member("same", ports.getFirst(), ports).start();
        TestMember other = add(TestMember.of(
                TestMember.info("same", 2), TestMember.settings(TestMember.CLUSTER, ports.getLast(), ports, null)));

        assertThatThrownBy(other::start)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("node 'same' is in cluster 'test-kv' already, with address same.example:7410");

        assertThat(one.keeper().view().nodes()).containsExactly(one.info());
    }

    @Test
    void givenTwoClusters_whenOneListsTheOther_thenTheyStayApart() {
        List<Integer> ports = TestMember.freePorts(2);
        TestMember one = member("one", ports.getFirst(), ports).start();
        TestMember other = add(
                TestMember.of(TestMember.info("other"), TestMember.settings("another", ports.getLast(), ports, null)));

        other.start();

        assertThat(other.names()).containsExactly("other");
        assertThat(one.names()).containsExactly("one");
    }
}
