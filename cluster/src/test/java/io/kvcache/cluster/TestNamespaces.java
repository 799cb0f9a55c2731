package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;

/// Network namespaces of Linux at two bridges, and a cable between the bridges that a test can cut. Needs root.
///
/// @param tag first letters of all names in the kernel
/// @param left namespaces at the first bridge; the others are at the second
public record TestNamespaces(String tag, int count, int left) implements AutoCloseable {

    /// Returns whether this process may make them.
    public static boolean areAllowed() {
        return "root".equals(System.getProperty("user.name"))
                && List.of("/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip").stream()
                        .anyMatch(ip -> Files.isExecutable(Path.of(ip)));
    }

    public static TestNamespaces make(int count, int left) throws IOException, InterruptedException {
        String tag = "kv" + ProcessHandle.current().pid() % 100_000;
        TestNamespaces namespaces = new TestNamespaces(tag, count, left);
        namespaces.run("ip link add %1$sA type bridge; ip link add %1$sB type bridge; ip link set %1$sA up;"
                + " ip link set %1$sB up; ip link add %1$sX type veth peer name %1$sY;"
                + " ip link set %1$sX master %1$sA up; ip link set %1$sY master %1$sB up");
        for (int i = 0; i < count; i++) {
            namespaces.run(("ip netns add %1$sn{i}; ip link add %1$se{i} type veth peer name %1$si{i};"
                            + " ip link set %1$si{i} netns %1$sn{i}; ip link set %1$se{i} master %1$s{bridge} up;"
                            + " ip netns exec %1$sn{i} ip addr add {address}/24 dev %1$si{i};"
                            + " ip netns exec %1$sn{i} ip link set %1$si{i} up; ip netns exec %1$sn{i} ip link set lo up")
                    .replace("{i}", String.valueOf(i))
                    .replace("{bridge}", i < left ? "A" : "B")
                    .replace("{address}", address(i)));
        }
        return namespaces;
    }

    public static String address(int index) {
        return "10.99.0." + (index + 1);
    }

    /// The beginning of a command that runs in one of them.
    public List<String> prefix(int index) {
        return List.of("ip", "netns", "exec", tag + "n" + index);
    }

    /// Cuts the cable. No server is told: what is sent is lost.
    public void cut() throws IOException, InterruptedException {
        run("ip link set %1$sX down");
    }

    public void join() throws IOException, InterruptedException {
        run("ip link set %1$sX up");
    }

    private void run(String script) throws IOException, InterruptedException {
        Process shell = new ProcessBuilder("sh", "-ec", script.formatted(tag))
                .redirectErrorStream(true)
                .start();
        String said = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(shell.waitFor()).as(said).isZero();
    }

    @Override
    public void close() throws IOException {
        String namespaces = IntStream.range(0, count)
                .mapToObj(i -> "ip netns del %1$sn" + i + " || true; ")
                .reduce("", String::concat);
        try {
            run(namespaces + "for each in X A B; do ip link del %1$s$each || true; done");
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
