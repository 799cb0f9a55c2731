package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.FreePorts;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Five members in processes of their own, with the default failure timeout. Each test prints how long things took.
@Tag("nightly")
final class MemberProcessTest {

    private static final Duration FAILURE_AFTER = JGroupsMembership.Settings.DEFAULT_FAILURE_AFTER;
    private static final int MEMBERS = 5;

    @TempDir
    Path folder;

    private ClusterSecret secret;

    private final List<MemberProcess> processes = new ArrayList<>();
    private final List<Integer> ports = FreePorts.take(MEMBERS);

    @AfterEach
    void close() {
        processes.forEach(MemberProcess::close);
    }

    @BeforeEach
    void makeSecret() throws IOException {
        secret = ClusterSecret.open(folder.resolve("cluster.secret"));
    }

    private MemberProcess start(int index) {
        List<String> seeds =
                ports.subList(0, 3).stream().map(port -> "127.0.0.1:" + port).toList();
        MemberProcess process = MemberProcess.start(
                List.of(), "kv-" + index, "127.0.0.1:" + ports.get(index), seeds, FAILURE_AFTER, secret);
        processes.add(process);
        return process;
    }

    private void startAll() {
        IntStream.range(0, MEMBERS).forEach(this::start);
        System.out.printf("%d processes: one view after %.1f s%n", MEMBERS, awaitOneView(processes));
    }

    static double awaitOneView(List<MemberProcess> members) {
        long start = System.nanoTime();
        String names = members.stream().map(MemberProcess::name).sorted().collect(Collectors.joining(","));
        TestMember.await(
                () -> members.stream().allMatch(member -> member.names().equals(names))
                        && members.stream()
                                        .map(MemberProcess::digest)
                                        .distinct()
                                        .count()
                                == 1,
                () -> members + " instead of " + names);
        return (System.nanoTime() - start) / 1e9;
    }

    private List<MemberProcess> others(MemberProcess one) {
        return processes.stream().filter(process -> process != one).toList();
    }

    @Test
    void givenFive_whenTheFirstOrLastIsKilled_thenTheOthersAgree() {
        startAll();
        for (MemberProcess victim : List.of(processes.getLast(), processes.getFirst())) {
            victim.kill();
            List<MemberProcess> rest = others(victim);
            System.out.printf("%s was killed: the others agree after %.2f s%n", victim.name(), awaitOneView(rest));
            processes.remove(victim);
        }
        assertThat(processes).allMatch(process -> process.flaps() == 0);
    }

    @Test
    void givenAKilledProcess_whenItRestartsAtOnce_thenItGetsItsNameBack() {
        startAll();
        for (int index : new int[] {MEMBERS - 1, 0}) { // the second is the coordinator
            MemberProcess victim = processes.remove(index);
            String before = victim.digest();
            long start = System.nanoTime();
            victim.kill();

            MemberProcess restarted = start(index);
            processes.remove(restarted);
            processes.add(index, restarted);

            TestMember.await(
                    () -> processes.stream()
                            .noneMatch(process -> process.digest().equals(before)),
                    () -> processes + ", where the old process is still there");
            awaitOneView(processes);
            System.out.printf(
                    "%s restarted under its name: one view after %.1f s%n",
                    victim.name(), (System.nanoTime() - start) / 1e9);
        }
        assertThat(processes).allMatch(process -> process.flaps() == 0);
    }

    @Test
    void givenAStoppedProcess_whenItGoesOn_thenItIsBackInOneView() throws IOException, InterruptedException {
        startAll();
        MemberProcess stopped = processes.get(3);

        stopped.signal("STOP");
        System.out.printf("stopped: the others agree after %.1f s%n", awaitOneView(others(stopped)));
        Thread.sleep(Duration.ofSeconds(30));
        stopped.signal("CONT");

        System.out.printf("goes on: one view after %.1f s%n", awaitOneView(processes));
        assertThat(processes).allMatch(process -> process.flaps() == 0);
    }

    @Test
    void givenFive_whenOneLeaves_thenTheOthersKnowAtOnce() throws IOException, InterruptedException {
        startAll();
        MemberProcess left = processes.get(2);
        left.leave();
        System.out.printf("left: the others agree %.2f s after its end%n", awaitOneView(others(left)));
    }

    @Test
    void givenFive_whenNothingHappens_thenTheyCostLittle() throws IOException, InterruptedException {
        startAll();
        Thread.sleep(Duration.ofSeconds(5));
        Duration before = total();
        Duration interval = Duration.ofSeconds(30);
        Thread.sleep(interval);
        double percent = 100.0 * total().minus(before).toNanos() / interval.toNanos() / MEMBERS;
        processes.getFirst().askMemory();
        TestMember.await(() -> processes.getFirst().memoryKilobytes() != 0, () -> "no answer");
        long kilobytes = processes.getFirst().memoryKilobytes();
        System.out.printf("idle: %.2f %% of a core and %d kB of memory for each%n", percent, kilobytes);
        assertThat(percent).isLessThan(3); // 1.5 on a quiet machine
        assertThat(kilobytes).isLessThan(20_000);
    }

    private Duration total() {
        return processes.stream().map(MemberProcess::cpu).reduce(Duration.ZERO, Duration::plus);
    }

    @Test
    void givenAMember_whenItHasJoined_thenItListensAtItsPortAlone() throws IOException {
        MemberProcess process = start(0);
        awaitOneView(processes);

        assertThat(Stream.of(process.ports()).flatMap(List::stream)).containsExactly(ports.getFirst());
    }
}
