package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// Views of servers in a simulated network.
final class ViewKeeperTest {

    private static final Duration FAILURE_AFTER = Duration.ofSeconds(3);
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    /// A line a view is too much for thousands of views. Kept, as the level would be forgotten with the logger.
    private static final Logger LOG = Logger.getLogger("io.kvcache.cluster");

    private final SimulatedNetwork network = new SimulatedNetwork(1, FAILURE_AFTER);
    private final List<Node> nodes = new ArrayList<>();

    @BeforeAll
    static void silence() {
        LOG.setLevel(Level.OFF);
    }

    @AfterAll
    static void unsilence() {
        LOG.setLevel(null);
    }

    /// A server, with all views that its listener was told.
    private record Node(SimulatedMembership membership, ViewKeeper keeper, NodeInfo info, List<ClusterView> told) {

        static Node start(SimulatedNetwork network, String name, long incarnation) {
            SimulatedMembership membership = network.member();
            ViewKeeper keeper = new ViewKeeper("test-kv", membership, FAILURE_AFTER, network::nanos);
            Node node = new Node(membership, keeper, TestMember.info(name, incarnation), new ArrayList<>());
            keeper.listen(node.told::add);
            keeper.start(node.info);
            return node;
        }

        List<String> names() {
            return keeper.view().nodes().stream().map(NodeInfo::name).toList();
        }
    }

    private void startNodes(int count) {
        IntStream.range(0, count).forEach(i -> nodes.add(Node.start(network, "kv-" + i, 1)));
        network.advance(SECOND);
    }

    @Test
    void givenOneNode_whenItHasStarted_thenItIsInItsView() {
        Node node = Node.start(network, "kv-0", 1);

        assertThat(node.keeper.view().nodes()).containsExactly(node.info);
        assertThat(node.keeper.viewChanges()).isEqualTo(1);
    }

    @Test
    void givenFive_whenAllHaveStarted_thenAllViewsAreEqual() {
        startNodes(5);

        assertThat(nodes).extracting(node -> node.keeper.view().digest()).containsOnly(digest(0));
        assertThat(nodes.getFirst().names()).hasSize(5);
    }

    private long digest(int node) {
        return nodes.get(node).keeper.view().digest();
    }

    @Test
    void givenTwo_whenOneDrains_thenItOwnsNothingInBothViews() {
        startNodes(2);

        nodes.getLast().keeper.setState(NodeState.DRAINING);
        network.advance(SECOND);

        assertThat(nodes).allMatch(node -> node.keeper.view().serving().size() == 1);
        assertThat(nodes.getLast().keeper.self().state()).isEqualTo(NodeState.DRAINING);
    }

    @Test
    void givenAListener_whenItHasEnded_thenItIsToldNothing() {
        startNodes(1);
        List<ClusterView> told = new ArrayList<>();
        Runnable end = nodes.getFirst().keeper.listen(told::add);

        nodes.getFirst().keeper.setState(NodeState.DRAINING);
        end.run();
        nodes.getFirst().keeper.setState(NodeState.SERVING);

        assertThat(told).hasSize(1);
    }

    @Test
    void givenAListenerThatFails_whenTheViewChanges_thenTheOthersAreTold() {
        ViewKeeper keeper = new ViewKeeper("test-kv", network.member());
        List<ClusterView> told = new ArrayList<>();
        keeper.listen(_ -> {
            throw new IllegalStateException("a test");
        });
        keeper.listen(told::add);

        keeper.start(TestMember.info("kv-0"));

        assertThat(told).containsExactly(keeper.view());
    }

    @Test
    void givenAPartition_whenItHeals_thenBothSidesMerge() {
        startNodes(5);
        network.partition(Set.of(nodes.get(3).membership, nodes.get(4).membership));
        network.advance(10 * SECOND);
        assertThat(nodes.get(0).names()).containsExactly("kv-0", "kv-1", "kv-2");
        assertThat(nodes.get(4).names()).containsExactly("kv-3", "kv-4");

        network.heal();
        network.advance(10 * SECOND);

        assertThat(nodes).allMatch(node -> node.names().size() == 5).allMatch(node -> node.keeper.mergeCount() > 0);
        assertThat(nodes).allMatch(node -> node.keeper.flaps() == 0);
    }

    @Test
    void givenALiveNode_whenItIsSuspected_thenAFlapIsCounted() {
        startNodes(2);

        for (int i = 0; i < 20; i++) { // a few of them are back within the failure timeout
            network.suspectFalsely(nodes.getLast().membership);
            network.advance(10 * SECOND);
        }

        assertThat(nodes).allMatch(node -> node.names().size() == 2);
        assertThat(nodes.stream().mapToLong(node -> node.keeper.flaps()).sum()).isPositive();
    }

    @Test
    void givenACrash_whenTheNodeRestarts_thenNoFlapIsCounted() {
        startNodes(2);

        network.crash(nodes.getLast().membership);
        network.advance(2 * SECOND);
        assertThat(nodes.getFirst().names()).containsExactly("kv-0");
        assertThat(nodes.getFirst().keeper.left()).singleElement().satisfies(left -> {
            assertThat(left.name()).isEqualTo("kv-1");
            assertThat(left.ago()).isBetween(Duration.ZERO, Duration.ofSeconds(2));
            assertThat(left.drained()).isFalse();
        });
        Node.start(network, "kv-1", 2);
        network.advance(SECOND);
        assertThat(nodes.getFirst().keeper.left()).isEmpty();

        assertThat(nodes.getFirst().names()).containsExactly("kv-0", "kv-1");
        assertThat(incarnationOf("kv-1", nodes.getFirst())).isEqualTo(2);
        assertThat(nodes.getFirst().keeper.flaps()).isZero();
    }

    @Test
    void givenServersThatDrop_whenOnlyThatDiffers_thenTheViewKeepsItsNumber() {
        startNodes(2);
        ViewKeeper keeper = nodes.getFirst().keeper;
        List<ClusterView> told = new ArrayList<>();
        keeper.listen(told::add);
        long before = keeper.view().epoch();

        nodes.getLast().keeper.setDrops(17);
        network.advance(SECOND);

        assertThat(told).last().satisfies(view -> assertThat(view.node("kv-1")).matches(node -> node.drops() == 17));
        assertThat(keeper.view().epoch()).isEqualTo(before).isEqualTo(keeper.viewChanges());
        nodes.getLast().keeper.setState(NodeState.DRAINING);
        network.advance(SECOND);
        assertThat(keeper.view().epoch()).isEqualTo(before + 1).isEqualTo(keeper.viewChanges());
    }

    private static long incarnationOf(String name, Node node) {
        return Objects.requireNonNull(node.keeper.view().node(name)).incarnation();
    }

    @Test
    void givenAStoppedProcess_whenItGoesOn_thenItIsBack() {
        startNodes(3);

        network.stop(nodes.getLast().membership);
        network.advance(6 * SECOND);
        assertThat(nodes.getFirst().names()).containsExactly("kv-0", "kv-1");
        network.resume(nodes.getLast().membership);
        network.advance(10 * SECOND);

        assertThat(nodes).allMatch(node -> node.names().size() == 3);
    }

    @Test
    void givenALiveNode_whenAnotherHasItsName_thenItIsRefused() {
        startNodes(1);

        assertThatThrownBy(() -> Node.start(network, "kv-0", 2))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("node 'kv-0' is in the cluster already");
    }

    @Test
    void givenANodeInUse_whenItsNameWouldChange_thenItIsRefused() {
        startNodes(1);

        assertThatThrownBy(() -> nodes.getFirst().keeper.update(TestMember.info("kv-9")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("node 'kv-0' of incarnation 1 cannot become 'kv-9' of 1; both stay the same while it runs");
    }

    @Test
    void givenRandomEvents_whenAllIsQuiet_thenAllViewsAreEqual() {
        for (int round = 0; round < Repetitions.of("kvcache.cluster.seeds", 20, 5_000); round++) {
            long seed = ThreadLocalRandom.current().nextLong();
            assertThat(run(seed)).as("seed %d", seed).isEqualTo(run(seed));
        }
    }

    /// Lets eight nodes join, crash, stop, leave and part, and returns what all were told.
    private static String run(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        SimulatedNetwork network = new SimulatedNetwork(seed, FAILURE_AFTER);
        network.loseMessages(random.nextDouble(0.3));
        List<Node> all = new ArrayList<>();
        List<Node> live = new ArrayList<>();
        for (int step = 0; step < 30; step++) {
            act(random, network, all, live, step);
            network.advance(random.nextLong(4 * SECOND));
        }
        network.loseMessages(0);
        live.forEach(node -> network.resume(node.membership));
        network.heal();
        network.advance(60 * SECOND);

        List<String> names =
                live.stream().map(node -> node.info.name()).sorted().toList();
        assertThat(live).as("seed %d", seed).allMatch(node -> node.names().equals(names));
        assertThat(live.stream()
                        .map(node -> node.keeper.view().digest())
                        .distinct()
                        .count())
                .as("seed %d", seed)
                .isLessThanOrEqualTo(1);
        all.forEach(node -> assertThat(node.told)
                .as("seed %d", seed)
                .isSortedAccordingTo((one, other) -> Long.compare(one.epoch(), other.epoch()))
                .last()
                .isEqualTo(node.keeper.view()));
        return all.stream().map(node -> node.told.toString()).toList().toString();
    }

    private static void act(
            SplittableRandom random, SimulatedNetwork network, List<Node> all, List<Node> live, int step) {
        Node some = live.isEmpty() ? null : live.get(random.nextInt(live.size()));
        if (some == null || (live.size() < 8 && random.nextInt(3) == 0)) {
            Node added = Node.start(network, "kv-" + step, step);
            all.add(added);
            live.add(added);
            return;
        }
        switch (random.nextInt(8)) {
            case 0 -> {
                network.crash(some.membership);
                live.remove(some);
            }
            case 1 -> {
                some.keeper.close();
                live.remove(some);
            }
            case 2 -> network.stop(some.membership);
            case 3 -> network.resume(some.membership);
            case 4 -> {
                Set<SimulatedMembership> side = new HashSet<>();
                live.stream().filter(_ -> random.nextBoolean()).forEach(node -> side.add(node.membership));
                network.partition(side);
            }
            case 5 -> network.heal();
            case 6 -> network.suspectFalsely(some.membership);
            default -> some.keeper.setState(random.nextBoolean() ? NodeState.SERVING : NodeState.DRAINING);
        }
    }
}
