package io.kvcache.server.doctor;

import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.memory.MemoryLimit;
import io.kvcache.server.program.Program;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// Looks at all that there is to look at.
public final class Checkup {

    private static final double GIBIBYTE = 1L << 30;
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private static final Duration LIMIT = Duration.ofSeconds(10);

    /// What the fact about graphics processors is called.
    public static final String GPU = "GPU";

    private Checkup() {}

    /// All facts of this machine, in the order they are shown in.
    ///
    /// @param disk where to measure a disk, which takes some seconds and 256 MiB; null for nowhere
    public static List<Fact> run(@Nullable Path disk) {
        long values = ServerConfig.defaults(HostResources.detect()).memory().hostBytes();
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
        facts.add(said("gcc", LIMIT, "run it by hand: it hangs", "gcc", "--version"));
        facts.add(said("fio", LIMIT, "run it by hand: it hangs", "fio", "--version"));
        facts.add(said(
                GPU,
                LIMIT,
                "the GPU's driver hangs: read dmesg for NVRM and Xid, then reload the driver or restart the machine",
                "nvidia-smi",
                "-L"));
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
                        HostResources.detect().memoryBytes() / GIBIBYTE,
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

    /// What a program says of itself first, or `none`.
    static Fact said(String name, Duration limit, String advice, String... command) {
        try {
            Program.Output output = Program.run(limit, new ProcessBuilder(command).redirectErrorStream(true));
            return output.ended()
                    ? Fact.of(
                            name,
                            output.text().lines().findFirst().orElse("none").strip())
                    : new Fact(name, command[0] + " did not end within " + limit.toSeconds() + " s", advice);
        } catch (IOException absent) {
            return Fact.of(name, "none");
        }
    }
}
