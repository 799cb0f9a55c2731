package io.kvcache.bench.doctor;

import io.kvcache.server.config.Machine;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.memory.MemoryLimit;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Looks at all that there is to look at.
public final class Checkup {

    private static final double GIBIBYTE = 1L << 30;
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private Checkup() {}

    /// All facts of this machine, in the order they are shown in.
    ///
    /// @param disk where to measure a disk, which takes some seconds and 256 MiB; null for nowhere
    public static List<Fact> run(@Nullable Path disk) {
        long values = ServerConfig.defaults(Machine.here()).memory().hostBytes();
        List<Fact> facts = new ArrayList<>(List.of(
                Fact.of("JDK", System.getProperty("java.home") + " (" + System.getProperty("java.version") + ")"),
                Fact.of("cores", Integer.toString(Runtime.getRuntime().availableProcessors())),
                memory(),
                sharedMemory(values)));
        facts.addAll(new KernelFacts(Path.of("/"), values).all(System.getProperty("os.version")));
        facts.add(RingProbe.fact());
        facts.add(Fact.of(
                "UCX",
                UcxMemory.possible() ? "installed" : "none",
                !UcxMemory.possible(),
                "apt-get install libucx0, for transport.ucx: clients that read over RDMA"));
        facts.add(Fact.of("gcc", firstLine("gcc", "--version")));
        facts.add(Fact.of("fio", firstLine("fio", "--version")));
        facts.add(Fact.of("GPU", firstLine("nvidia-smi", "-L")));
        if (disk != null) {
            facts.addAll(DiskFacts.of(disk));
        }
        return facts;
    }

    private static Fact memory() {
        MemoryLimit limit = MemoryLimit.here();
        return Fact.of(
                "memory",
                String.format(
                        Locale.ROOT,
                        "%.1f GiB in all, %.1f GiB at most by %s",
                        Machine.here().memoryBytes() / GIBIBYTE,
                        limit.bytes() / GIBIBYTE,
                        limit.source()));
    }

    private static Fact sharedMemory(long values) {
        try {
            FileStore store = Files.getFileStore(SHARED_MEMORY);
            return Fact.of(
                    SHARED_MEMORY.toString(),
                    String.format(
                            Locale.ROOT,
                            "%.1f GiB in all, %.1f GiB free",
                            store.getTotalSpace() / GIBIBYTE,
                            store.getUsableSpace() / GIBIBYTE),
                    store.getTotalSpace() < values,
                    "where processes share memory (leases, JVMs on one host): docker run --shm-size, or mount -o"
                            + " remount,size=…");
        } catch (IOException none) {
            return Fact.of(SHARED_MEMORY.toString(), "none");
        }
    }

    /// What a program says of itself, or `none`.
    private static String firstLine(String... command) {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            try {
                String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                process.waitFor(10, TimeUnit.SECONDS);
                return text.lines().findFirst().orElse("none").strip();
            } finally {
                process.destroyForcibly();
            }
        } catch (IOException absent) {
            return "none";
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            return Fact.UNKNOWN;
        }
    }
}
