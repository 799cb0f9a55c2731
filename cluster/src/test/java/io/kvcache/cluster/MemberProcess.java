package io.kvcache.cluster;

import io.kvcache.core.contract.TestJvm;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A member in a process of its own, which can be killed and stopped.
///
/// The process writes a line for each view: its digest, flaps, merges, names, and kilobytes of the JVM's heap and other
/// memory in use, less what was in use before it joined. A line of input has it write one more. It leaves at the end of
/// its input.
final class MemberProcess implements AutoCloseable {

    private final String name;
    private final Process process;
    private volatile String line = "";

    private MemberProcess(String name, Process process) {
        this.name = name;
        this.process = process;
        Thread.ofPlatform().daemon().start(this::read);
    }

    /// Starts one.
    ///
    /// @param prefix of the command, for example to enter a network namespace
    /// @param seeds `host:port`
    /// @param proof its certificate, or the secret
    static MemberProcess start(
            List<String> prefix,
            String name,
            String listen,
            List<String> seeds,
            Duration failureAfter,
            ClusterProof proof) {
        List<String> command = new ArrayList<>(prefix);
        command.add(TestJvm.program());
        command.addAll(TestJvm.FLAGS);
        command.add("-Xmx64m");
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), MemberProcess.class.getName()));
        command.addAll(List.of(name, listen, String.join(",", seeds), String.valueOf(failureAfter.toMillis())));
        List<Path> files = switch (proof) {
            case ClusterTls tls -> tls.files();
            case ClusterSecret secret -> List.of(secret.file());
        };
        files.forEach(file -> command.add(file.toString()));
        try {
            return new MemberProcess(
                    name,
                    new ProcessBuilder(command)
                            .redirectError(ProcessBuilder.Redirect.DISCARD)
                            .start());
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private void read() {
        try (InputStream in = process.getInputStream();
                BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
            for (String next = lines.readLine(); next != null; next = lines.readLine()) {
                line = next;
            }
        } catch (IOException ended) {
            line = "";
        }
    }

    /// The process: name, listen, seeds, failure timeout in milliseconds, and the files of a certificate or of a
    /// secret.
    public static void main(String[] arguments) throws IOException {
        ClusterProof proof = arguments.length < 7
                ? ClusterSecret.open(Path.of(arguments[4]))
                : ClusterTls.open(Path.of(arguments[4]), Path.of(arguments[5]), Path.of(arguments[6]));
        Duration failureAfter = Duration.ofMillis(Long.parseLong(arguments[3]));
        try (TestMember member = TestMember.of(
                TestMember.info(arguments[0], System.currentTimeMillis()),
                new JGroupsMembership.Settings(
                        TestMember.CLUSTER,
                        arguments[1],
                        List.of(arguments[2].split(",", -1)),
                        "",
                        proof,
                        failureAfter))) {
            long before = usedKilobytes();
            member.keeper().listen(view -> print(view, member.keeper(), 0));
            member.start();
            while (System.in.read() >= 0) {
                print(member.keeper().view(), member.keeper(), usedKilobytes() - before);
            }
        }
    }

    private static void print(ClusterView view, ViewKeeper keeper, long kilobytes) {
        String names = view.nodes().stream().map(NodeInfo::name).collect(Collectors.joining(","));
        System.out.printf("%x %d %d %s %d%n", view.digest(), keeper.flaps(), keeper.mergeCount(), names, kilobytes);
    }

    private static long usedKilobytes() {
        MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
        memory.gc();
        return (memory.getHeapMemoryUsage().getUsed()
                        + memory.getNonHeapMemoryUsage().getUsed())
                / 1024;
    }

    String name() {
        return name;
    }

    /// The digest of the newest view.
    String digest() {
        return part(0);
    }

    int flaps() {
        return Integer.parseInt(part(1));
    }

    int merges() {
        return Integer.parseInt(part(2));
    }

    /// The names in the newest view, separated by commas.
    String names() {
        return part(3);
    }

    private String part(int index) {
        String[] parts = line.split(" ", -1);
        return parts.length == 5 ? parts[index] : "";
    }

    /// Asks for a line with [#memoryKilobytes].
    void askMemory() throws IOException {
        process.getOutputStream().write('\n');
        process.getOutputStream().flush();
    }

    /// What membership takes of the JVM's memory, or 0 without an answer.
    long memoryKilobytes() {
        String kilobytes = part(4);
        return kilobytes.isEmpty() ? 0 : Long.parseLong(kilobytes);
    }

    void kill() {
        process.destroyForcibly();
    }

    /// Sends a signal: `STOP`, `CONT`.
    void signal(String signal) throws IOException, InterruptedException {
        new ProcessBuilder("kill", "-" + signal, String.valueOf(process.pid()))
                .start()
                .waitFor();
    }

    /// Leaves the cluster, and waits for the end of the process.
    void leave() throws IOException, InterruptedException {
        process.getOutputStream().close();
        process.waitFor(20, TimeUnit.SECONDS);
    }

    /// The processor time so far.
    Duration cpu() {
        return process.info().totalCpuDuration().orElse(Duration.ZERO);
    }

    /// The ports that it listens at, by TCP or UDP over IPv4 or IPv6.
    List<Integer> ports() throws IOException {
        List<String> sockets;
        try (Stream<Path> files = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
            sockets = files.map(MemberProcess::target)
                    .filter(target -> target.startsWith("socket:["))
                    .map(target -> target.substring(8, target.length() - 1))
                    .toList();
        }
        List<Integer> ports = new ArrayList<>();
        for (String table : List.of("tcp", "tcp6", "udp", "udp6")) {
            for (String row : Files.readAllLines(Path.of("/proc/" + process.pid() + "/net/" + table))) {
                String[] fields = row.strip().split("\\s+", -1);
                boolean listens = table.startsWith("udp") || fields[3].equals("0A");
                if (fields.length > 9 && listens && sockets.contains(fields[9])) {
                    ports.add(Integer.parseInt(fields[1].substring(fields[1].lastIndexOf(':') + 1), 16));
                }
            }
        }
        return ports;
    }

    private static String target(Path file) {
        try {
            return Files.readSymbolicLink(file).toString();
        } catch (IOException closed) {
            return "";
        }
    }

    @Override
    public void close() {
        kill();
    }

    @Override
    public String toString() {
        return name + " sees " + names();
    }
}
