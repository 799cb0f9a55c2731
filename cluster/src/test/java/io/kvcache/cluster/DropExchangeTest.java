package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.DropExchange.DropTarget;
import io.kvcache.cluster.DropRecord.NamespaceDigest;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// Servers that tell each other what clients have dropped, in virtual time.
final class DropExchangeTest {

    private static final Namespace GROUPS =
            BlockGroup.namespace(Namespace.of("m", BlockShape.kv(4, 1, 1024, 16, Dtype.BF16)));

    private final List<Server> servers = new ArrayList<>();
    private final Set<String> cut = new TreeSet<>();
    private long nanos = 7;
    private long messages;

    /// A server whose store is the list of what it has dropped.
    private final class Server implements Membership, DropTarget {

        private final String name;
        private final long incarnation;
        private final DropLog log;
        private final List<DropRecord> dropped = new ArrayList<>();
        private final List<DropRecord> remembered = new ArrayList<>();
        private final ViewKeeper views = new ViewKeeper("test", this);
        private final DropExchange exchange;
        private boolean knowsNamespaces = true;
        private boolean isGarbled;
        private boolean gaveUp;
        private @Nullable NodeInfo self;
        private @Nullable Listener listener;

        Server(String name, List<DropRecord> before) {
            this(name, before, NodeState.SERVING);
        }

        Server(String name, List<DropRecord> before, NodeState state) {
            this.name = name;
            incarnation = servers.size() + 1L;
            log = new DropLog();
            before.forEach(log::add);
            remembered.addAll(before);
            exchange = new DropExchange(log, this, views, () -> nanos / 1_000_000);
            servers.add(this);
            views.start(new NodeInfo(
                    ClusterNode.named(name), incarnation, NodeState.JOINING, "a", "", "", 0, exchange.digest()));
            views.setState(state);
        }

        void drop(long id) {
            exchange.onDrop(GROUPS, null, new DropMark(nanos / 1_000_000, id)).run();
        }

        @Override
        public void start(NodeInfo own, Listener ownListener) {
            listener = ownListener;
            update(own);
        }

        @Override
        public void update(NodeInfo changed) {
            self = changed;
            show();
        }

        private boolean reaches(Server other) {
            return cut.contains(name) == cut.contains(other.name);
        }

        @Override
        public void broadcast(byte[] message) {
            messages++;
            assertThat(message.length).isLessThanOrEqualTo(MAX_MESSAGE_BYTES);
            servers.stream()
                    .filter(other -> other != this && reaches(other))
                    .forEach(other -> Objects.requireNonNull(other.listener)
                            .onMessage(name, isGarbled ? Arrays.copyOf(message, message.length - 1) : message));
        }

        @Override
        public void close() {
            servers.remove(this);
            show();
        }

        @Override
        public boolean canDrop(NamespaceDigest namespace) {
            return knowsNamespaces;
        }

        @Override
        public long drop(DropRecord drop) {
            dropped.add(drop);
            return 1;
        }

        @Override
        public void remember(List<DropRecord> added) {
            remembered.addAll(added);
        }

        @Override
        public void giveUp() {
            gaveUp = true;
        }

        @Override
        public boolean repair() {
            return true;
        }
    }

    private void show() {
        for (Server server : List.copyOf(servers)) {
            List<NodeInfo> seen = servers.stream()
                    .filter(other -> other.self != null && server.reaches(other))
                    .map(other -> Objects.requireNonNull(other.self))
                    .toList();
            if (server.listener != null) {
                server.listener.onMembers(seen, false);
            }
        }
    }

    private static BlockKey key(long number) {
        return new BlockKey(number, ~number);
    }

    private void pass(Duration time) {
        for (long end = nanos + time.toNanos(); nanos < end; nanos += 100_000_000) {
            List.copyOf(servers).forEach(server -> server.exchange.step(nanos));
        }
    }

    private void assertAgreed(int drops) {
        assertThat(servers).allSatisfy(server -> {
            assertThat(server.exchange.size()).isEqualTo(drops);
            assertThat(server.exchange.agreesWithServing()).isTrue();
            assertThat(server.remembered).hasSizeGreaterThanOrEqualTo(drops);
        });
        assertThat(servers.stream().map(server -> server.exchange.digest()).distinct())
                .hasSize(1);
    }

    @Test
    void givenAClientThatReachesAll_whenItDrops_thenServersSendNothing() {
        Server a = new Server("a", List.of());
        Server b = new Server("b", List.of());
        pass(Duration.ofSeconds(1));

        DropMark mark = new DropMark(nanos / 1_000_000, 5);
        a.exchange.onDrop(GROUPS, null, mark).run();
        pass(Duration.ofMillis(300));
        b.exchange.onDrop(GROUPS, null, mark).run();
        pass(Duration.ofSeconds(30));

        assertAgreed(1);
        assertThat(messages).isZero();
        assertThat(a.dropped).as("by the client alone").isEmpty();
        assertThat(b.dropped).isEmpty();
    }

    @Test
    void givenAClientThatReachesOne_whenItDrops_thenTheOthersHearOfItFromOneServer() {
        Server a = new Server("a", List.of());
        Server b = new Server("b", List.of());
        Server c = new Server("c", List.of());
        pass(Duration.ofSeconds(1));

        b.drop(5);
        pass(Duration.ofSeconds(1));

        assertAgreed(1);
        assertThat(messages).isEqualTo(1);
        assertThat(List.of(a.dropped.size(), b.dropped.size(), c.dropped.size()))
                .containsExactly(1, 0, 1);
    }

    @Test
    void givenAServerThatWasAway_whenItIsBack_thenItHearsOfTheDropsBeforeItAgrees() {
        Server a = new Server("a", List.of());
        Server b = new Server("b", List.of());
        a.drop(1);
        b.drop(1);
        pass(Duration.ofSeconds(1));
        b.close();
        a.drop(2);
        pass(Duration.ofSeconds(20));

        Server again = new Server("b", b.remembered);
        again.exchange.step(nanos);
        assertThat(again.exchange.agreesWithServing()).isFalse();
        pass(Duration.ofMillis(300));

        assertAgreed(1);
        assertThat(again.dropped).hasSize(1);
        assertThat(a.dropped).isEmpty();
    }

    @Test
    void givenADropWhoseDigestIsNotTold_whenAServerJoins_thenItDoesNotAgreeBeforeItHasHeardOfIt() {
        Server a = new Server("a", List.of());
        pass(Duration.ofSeconds(1));
        a.drop(1);

        Server b = new Server("b", List.of(), NodeState.JOINING);
        b.exchange.step(nanos);
        assertThat(b.exchange.agreesWithServing()).isFalse();
        pass(Duration.ofMillis(600));

        assertAgreed(1);
        assertThat(b.dropped).hasSize(1);
    }

    @Test
    void givenNothingDropped_whenAServerJoins_thenItAgreesAfterHalfASecond() {
        new Server("a", List.of());
        pass(Duration.ofSeconds(1));

        Server b = new Server("b", List.of(), NodeState.JOINING);
        pass(Duration.ofMillis(500));
        assertThat(b.exchange.agreesWithServing()).isFalse();
        pass(Duration.ofMillis(100));

        assertAgreed(0);
    }

    @Test
    void givenServersThatAllJoin_whenNothingWasDropped_thenTheyAgreeAtOnce() {
        new Server("a", List.of(), NodeState.JOINING);
        new Server("b", List.of(), NodeState.JOINING);

        pass(Duration.ofMillis(100));

        assertAgreed(0);
    }

    @Test
    void givenTwoSidesThatDropped_whenTheyMeet_thenBothApplyWhatTheOtherDid() {
        Server a = new Server("a", List.of());
        Server b = new Server("b", List.of());
        Server c = new Server("c", List.of());
        pass(Duration.ofSeconds(1));
        cut.add("a");
        show();
        a.exchange.onDrop(GROUPS, key(1), new DropMark(0, 1)).run();
        pass(Duration.ofMillis(100));
        b.exchange.onDrop(GROUPS, key(2), new DropMark(0, 2)).run();
        pass(Duration.ofSeconds(5));
        assertThat(c.dropped).hasSize(1);

        cut.clear();
        show();
        pass(Duration.ofMillis(300));

        assertAgreed(2);
        assertThat(a.dropped).hasSize(1);
        assertThat(b.dropped).hasSize(1);
        assertThat(c.dropped).hasSize(2);
    }

    @Test
    void givenDisksThatMayTellOfTheNamespace_whenItsDropIsHeard_thenItWaitsUntilItIsKnown() {
        Server a = new Server("a", List.of());
        a.drop(1);
        Server b = new Server("b", List.of());
        b.knowsNamespaces = false;
        pass(Duration.ofSeconds(5));
        assertThat(b.exchange.agreesWithServing()).isFalse();
        assertThat(b.dropped).isEmpty();

        b.knowsNamespaces = true;
        pass(Duration.ofMillis(200));

        assertAgreed(1);
        assertThat(b.dropped).hasSize(1);
    }

    @Test
    void givenMessagesThatCannotBeRead_whenAServerJoins_thenItGivesUpWhatItHasAndAgrees() {
        Server a = new Server("a", List.of());
        a.drop(1);
        a.isGarbled = true;
        Server b = new Server("b", List.of(), NodeState.JOINING);

        pass(Duration.ofSeconds(30));
        assertThat(b.exchange.agreesWithServing()).isFalse();
        assertThat(b.gaveUp).isFalse();
        pass(Duration.ofSeconds(2));

        assertThat(b.gaveUp).isTrue();
        assertThat(b.exchange.agreesWithServing()).isTrue();
        assertThat(b.views.unreadableMessages()).isPositive();
        assertThat(a.gaveUp).isFalse();
    }

    @Test
    void givenDisksThatAreRead_whenAServerJoins_thenItGivesNothingUpHoweverLong() {
        Server a = new Server("a", List.of());
        a.drop(1);
        Server b = new Server("b", List.of(), NodeState.JOINING);
        b.knowsNamespaces = false;
        pass(Duration.ofMinutes(10));

        b.knowsNamespaces = true;
        pass(Duration.ofSeconds(1));

        assertAgreed(1);
        assertThat(b.gaveUp).isFalse();
    }

    @Test
    void givenALogOfManyDrops_whenAServerJoins_thenAllReachItInPiecesThatFit() {
        Server a = new Server("a", List.of());
        for (int i = 0; i < 5000; i++) {
            a.exchange.onDrop(GROUPS, key(i), new DropMark(0, i + 1)).run();
        }
        pass(Duration.ofSeconds(1));
        new Server("b", List.of());
        pass(Duration.ofSeconds(1));

        assertAgreed(5000);
        assertThat(messages).isBetween(6L, 12L);
    }
}
