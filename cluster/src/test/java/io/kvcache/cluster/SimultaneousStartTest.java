package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.FreePorts;
import io.kvcache.core.contract.Repetitions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Five members that start at the same moment, many times, with the default failure timeout.
@Tag("nightly")
final class SimultaneousStartTest {

    private static final int MEMBERS = 5;

    /// How long each view must stay as large as it is: rounds of looking for other sides of a partition.
    private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(2);

    @Test
    void givenThreeOfFiveListed_whenAllStartAtOnce_thenTheyFormOneView() throws InterruptedException {
        startOften(3);
    }

    @Test
    void givenAllListed_whenAllStartAtOnce_thenTheyFormOneView() throws InterruptedException {
        startOften(MEMBERS);
    }

    private static void startOften(int listed) throws InterruptedException {
        for (int round = 0; round < Repetitions.of("kvcache.cluster.starts", 3, 50); round++) {
            start(listed);
        }
    }

    private static void start(int listed) throws InterruptedException {
        List<Integer> ports = FreePorts.take(MEMBERS);
        List<TestMember> members = IntStream.range(0, MEMBERS)
                .mapToObj(i -> member(i, ports, listed))
                .toList();
        try {
            long start = System.nanoTime();
            TestMember.start(members);
            TestMember.awaitOneView(members);
            long formed = System.nanoTime() - start;
            Thread.sleep(Duration.ofNanos(QUIET_NANOS));
            long flaps = members.stream()
                    .mapToLong(member -> member.keeper().flaps())
                    .sum();
            long merges = members.stream()
                    .mapToLong(member -> member.keeper().mergeCount())
                    .sum();
            System.out.printf(
                    "%d of %d listed: one view after %.1f s, %d merges, %d flaps%n",
                    listed, MEMBERS, formed / 1e9, merges, flaps);
            assertThat(flaps).isZero();
            assertThat(members).allMatch(member -> member.names().size() == MEMBERS);
        } finally {
            members.forEach(TestMember::close);
        }
    }

    private static TestMember member(int index, List<Integer> ports, int listed) {
        JGroupsMembership.Settings quick =
                TestMember.settings(TestMember.CLUSTER, ports.get(index), ports.subList(0, listed), TestMember.SECRET);
        return TestMember.of(
                TestMember.info("kv-" + index),
                new JGroupsMembership.Settings(
                        quick.cluster(),
                        quick.listen(),
                        quick.seeds(),
                        "",
                        quick.proof(),
                        JGroupsMembership.Settings.DEFAULT_FAILURE_AFTER));
    }
}
