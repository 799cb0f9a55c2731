package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Five members with certificates, each in its network namespace, and a cut between three and two of them. Prints how
/// long things took.
@Tag("nightly")
final class PartitionTest {

    private static final int MEMBERS = 5;
    private static final int LEFT = 3;
    private static final int PORT = 7421;

    @TempDir
    Path folder;

    @Test
    void givenACut_whenItIsMended_thenThereIsOneViewAgain() throws Exception {
        assumeTrue(TestNamespaces.areAllowed(), "network namespaces need root and the command ip");
        List<MemberProcess> members = new ArrayList<>();
        try (TestNamespaces namespaces = TestNamespaces.make(MEMBERS, LEFT)) {
            try {
                start(namespaces, members);
                cutAndMend(namespaces, members);
            } finally {
                members.forEach(MemberProcess::close);
            }
        }
    }

    private void start(TestNamespaces namespaces, List<MemberProcess> members) throws Exception {
        TestAuthority authority = new TestAuthority(folder, "own");
        List<String> seeds = IntStream.range(0, LEFT)
                .mapToObj(i -> TestNamespaces.address(i) + ":" + PORT)
                .toList();
        for (int i = 0; i < MEMBERS; i++) {
            String name = "kv-" + i;
            members.add(MemberProcess.start(
                    namespaces.prefix(i),
                    name,
                    TestNamespaces.address(i) + ":" + PORT,
                    seeds,
                    JGroupsMembership.Settings.DEFAULT_FAILURE_AFTER,
                    authority.issue(name, name)));
        }
        System.out.printf("with TLS: one view after %.1f s%n", MemberProcessTest.awaitOneView(members));
    }

    private static void cutAndMend(TestNamespaces namespaces, List<MemberProcess> members)
            throws IOException, InterruptedException {
        namespaces.cut();
        double left = MemberProcessTest.awaitOneView(members.subList(0, LEFT));
        double right = left + MemberProcessTest.awaitOneView(members.subList(LEFT, MEMBERS));
        System.out.printf("cut: %d agree after %.1f s, %d after %.1f s%n", LEFT, left, MEMBERS - LEFT, right);
        Thread.sleep(Duration.ofSeconds(30));

        namespaces.join();

        System.out.printf("mended: one view after %.1f s%n", MemberProcessTest.awaitOneView(members));
        assertThat(members).allMatch(member -> member.merges() > 0).allMatch(member -> member.flaps() == 0);
    }
}
