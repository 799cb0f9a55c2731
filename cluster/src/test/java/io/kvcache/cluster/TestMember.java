package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/// A member of a group in this JVM, over the loopback interface.
///
/// @param keeper its view
record TestMember(ViewKeeper keeper, NodeInfo info) implements AutoCloseable {

    static final String CLUSTER = "test-kv";
    static final Duration FAILURE_AFTER = Duration.ofSeconds(1);

    /// Of the members of this JVM.
    static final ClusterSecret SECRET = newSecret();

    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(40);

    /// Makes a secret that no other one is like.
    static ClusterSecret newSecret() {
        try {
            Path folder = Files.createTempDirectory("kvcache-secret-");
            ClusterSecret made = ClusterSecret.open(folder.resolve("cluster.secret"));
            Files.delete(made.file());
            Files.delete(folder);
            return made;
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    static NodeInfo info(String name) {
        return info(name, 1);
    }

    static NodeInfo info(String name, long incarnation) {
        return new NodeInfo(
                ClusterNode.named(name), incarnation, NodeState.SERVING, name + ".example:7410", "", "test", 0);
    }

    static JGroupsMembership.Settings settings(String cluster, int port, List<Integer> seeds, ClusterProof proof) {
        return new JGroupsMembership.Settings(
                cluster,
                "127.0.0.1:" + port,
                seeds.stream().map(seed -> "127.0.0.1:" + seed).toList(),
                "",
                proof,
                FAILURE_AFTER);
    }

    /// Makes one that has not joined.
    static TestMember of(NodeInfo info, JGroupsMembership.Settings settings) {
        return new TestMember(
                new ViewKeeper(
                        settings.cluster(), new JGroupsMembership(settings), settings.failureAfter(), System::nanoTime),
                info);
    }

    static TestMember of(String name, int port, List<Integer> seeds) {
        return of(info(name), settings(CLUSTER, port, seeds, SECRET));
    }

    TestMember start() {
        keeper.start(info);
        return this;
    }

    List<String> names() {
        return keeper.view().nodes().stream().map(NodeInfo::name).toList();
    }

    @Override
    public void close() {
        keeper.close();
    }

    /// Starts all at the same moment.
    static void start(List<TestMember> members) throws InterruptedException {
        List<Thread> threads = members.stream()
                .map(member -> Thread.ofPlatform().start(member::start))
                .toList();
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void awaitOneView(List<TestMember> members) {
        awaitNames(
                members,
                members.stream().map(member -> member.info.name()).sorted().toList());
    }

    static void awaitNames(List<TestMember> members, List<String> names) {
        await(
                () -> members.stream().allMatch(member -> member.names().equals(names)),
                () -> members.stream().map(TestMember::names).toList() + " instead of " + names);
        assertThat(members.stream().map(member -> member.keeper.view().digest()).distinct())
                .hasSize(1);
    }

    static void await(BooleanSupplier condition, Supplier<String> otherwise) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as(otherwise).isLessThan(WAIT_NANOS);
            Pause.briefly();
        }
    }
}
