package io.kvcache.server.doctor;

import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.memory.CgroupMemoryLimit;
import io.kvcache.server.program.ProcessRunner;
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
public final class SystemCheck {

    private static final double GIBIBYTE = 1L << 30;
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private static final Duration LIMIT = Duration.ofSeconds(10);

    /// What the fact about graphics processors is called.
    public static final String GPU = "GPU";

    private SystemCheck() {}

    /// All facts of this machine, in the order they are shown in.
    ///
    /// @param disk where to measure a disk, which takes some seconds and 256 MiB; null for nowhere
    public static List<CheckResult> run(@Nullable Path disk) {
        long values = ServerConfig.defaults(HostResources.detect()).memory().hostBytes();
        List<CheckResult> facts = new ArrayList<>(List.of(
                CheckResult.of(
                        "JDK", System.getProperty("java.home") + " (" + System.getProperty("java.version") + ")"),
                CheckResult.of("cores", Integer.toString(Runtime.getRuntime().availableProcessors())),
                checkMemory(),
                checkSharedMemory(values)));
        facts.addAll(new KernelCheck(Path.of("/"), values).run(System.getProperty("os.version")));
        facts.add(IoUringProbe.check());
        facts.add(CheckResult.of(
                "UCX",
                UcxMemory.possible() ? "installed" : "none",
                !UcxMemory.possible(),
                "apt-get install libucx0, for transport.ucx: clients that read over RDMA"));
        facts.add(checkCommand("gcc", LIMIT, "run it by hand: it hangs", "gcc", "--version"));
        facts.add(checkCommand("fio", LIMIT, "run it by hand: it hangs", "fio", "--version"));
        facts.add(checkCommand(
                GPU,
                LIMIT,
                "the GPU's driver hangs: read dmesg for NVRM and Xid, then reload the driver or restart the machine",
                "nvidia-smi",
                "-L"));
        if (disk != null) {
            facts.addAll(DiskCheck.run(disk));
        }
        return facts;
    }

    private static CheckResult checkMemory() {
        CgroupMemoryLimit limit = CgroupMemoryLimit.detect();
        return CheckResult.of(
                "memory",
                String.format(
                        Locale.ROOT,
                        "%.1f GiB in all, %.1f GiB at most by %s",
                        HostResources.detect().memoryBytes() / GIBIBYTE,
                        limit.bytes() / GIBIBYTE,
                        limit.source()));
    }

    private static CheckResult checkSharedMemory(long values) {
        try {
            FileStore store = Files.getFileStore(SHARED_MEMORY);
            return CheckResult.of(
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
            return CheckResult.of(SHARED_MEMORY.toString(), "none");
        }
    }

    /// What a program says of itself first, or `none`.
    static CheckResult checkCommand(String name, Duration limit, String advice, String... command) {
        try {
            ProcessRunner.ProcessOutput output =
                    ProcessRunner.run(limit, new ProcessBuilder(command).redirectErrorStream(true));
            return output.isFinished()
                    ? CheckResult.of(
                            name,
                            output.text().lines().findFirst().orElse("none").strip())
                    : new CheckResult(name, command[0] + " did not end within " + limit.toSeconds() + " s", advice);
        } catch (IOException absent) {
            return CheckResult.of(name, "none");
        }
    }
}
