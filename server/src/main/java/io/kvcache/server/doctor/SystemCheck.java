package io.kvcache.server.doctor;

import io.kvcache.server.cluster.ClusterPreflight.HostNameCheck;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.MemoryBudget.CgroupMemoryLimit;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.doctor.SystemCheck.CheckResult;
import io.kvcache.server.doctor.SystemCheck.KernelCheck.IoUringProbe;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.memory.SharedMemorySource;
import io.kvcache.tiers.memory.SharedMemorySource.AbandonedFolder;
import io.kvcache.tiers.os.ByteSizeFormat;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Runs all checks of the machine.
public final class SystemCheck {

    private static final double GIBIBYTE = 1L << 30;
    private static final Path SHARED_MEMORY = TransportConfig.SHM_DIRECTORY;

    private static final Path RDMA_DEVICES = Path.of("/sys/class/infiniband");

    private static final Duration LIMIT = Duration.ofSeconds(10);

    /// The name of the check of graphics processors.
    public static final String GPU = "GPU";

    private static final String NOT_MEASURED = "not measured: ";

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
                checkSharedMemory(values),
                checkAbandonedMemory(SharedMemorySource.abandoned(SHARED_MEMORY)),
                checkHostName(HostNameCheck.run())));
        facts.addAll(new KernelCheck(Path.of("/"), values).run(System.getProperty("os.version")));
        facts.add(IoUringProbe.check());
        facts.add(checkUcx(UcxMemory.possible(), hasRdma(RDMA_DEVICES)));
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

    /// Returns whether a disk tier cannot be where the check was asked to measure one.
    public static boolean isUnusableDisk(CheckResult check) {
        return check.value().startsWith(NOT_MEASURED);
    }

    static CheckResult checkHostName(HostNameCheck check) {
        return CheckResult.of(
                "host name",
                check.name() + (check.address().isEmpty() ? "" : " (" + check.address() + ")"),
                !check.problem().isEmpty(),
                "in a cluster, set cluster.advertise to an address that clients reach, or transport.listen to one of"
                        + " this machine: the host name " + check.problem());
    }

    /// UCX is of use where the machine has a device for RDMA.
    static CheckResult checkUcx(boolean installed, boolean rdma) {
        return CheckResult.of(
                "UCX",
                (installed ? "installed" : "none") + (rdma ? "" : ", and no RDMA device"),
                rdma && !installed,
                "apt-get install libucx0, for transport.ucx: clients that read over RDMA");
    }

    /// Returns whether the kernel lists a device there.
    static boolean hasRdma(Path devices) {
        try (Stream<Path> all = Files.list(devices)) {
            return all.findAny().isPresent();
        } catch (IOException none) {
            return false;
        }
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
                    "where processes share memory (JVMs on one host): docker run --shm-size, or mount -o"
                            + " remount,size=…");
        } catch (IOException none) {
            return CheckResult.of(SHARED_MEMORY.toString(), "none");
        }
    }

    static CheckResult checkAbandonedMemory(List<AbandonedFolder> left) {
        String folders = left.stream()
                .map(each -> each.folder() + ": " + ByteSizeFormat.format(each.bytes()) + mappedBy(each))
                .collect(Collectors.joining(", "));
        boolean mapped = left.stream().anyMatch(each -> !each.mappedBy().isEmpty());
        return CheckResult.of(
                "left in " + SHARED_MEMORY,
                left.isEmpty() ? "nothing" : folders,
                !left.isEmpty(),
                (mapped ? "end the clients that map it, then " : "")
                        + "start a server as this user, which removes what killed servers left behind");
    }

    private static String mappedBy(AbandonedFolder left) {
        return left.mappedBy().isEmpty()
                ? ""
                : ", mapped by PID "
                        + left.mappedBy().stream().map(String::valueOf).collect(Collectors.joining(" and "));
    }

    /// Reports the first line that a program prints, or `none`.
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

    /// Checks how well a directory serves as a disk tier.
    private static final class DiskCheck {

        /// A slower disk spins, or is throttled.
        private static final double MIN_GIGABYTES = 0.2;

        private DiskCheck() {}

        /// Measures there, which takes some seconds.
        static List<CheckResult> run(Path folder) {
            try {
                return run(folder, DiskSpeed.measure(folder));
            } catch (IOException failed) {
                String reason = failed.getMessage() == null ? failed.toString() : failed.getMessage();
                return List.of(new CheckResult(
                        "disk " + folder, NOT_MEASURED + reason, "name a directory with room that you may write to"));
            }
        }

        static List<CheckResult> run(Path folder, DiskSpeed speed) {
            boolean slow = speed.readGigabytes() < MIN_GIGABYTES;
            return List.of(
                    CheckResult.of(
                            "disk " + folder,
                            speed.path(),
                            !speed.isDirect(),
                            speed.inMemory()
                                    ? "name a directory on a disk: this one is memory"
                                    : "use a file system with O_DIRECT, as ext4 and xfs: values pass the page cache here"),
                    CheckResult.of("writes " + folder, gigabytes(speed.writeGigabytes())),
                    CheckResult.of(
                            "reads " + folder,
                            gigabytes(speed.readGigabytes()),
                            slow,
                            "use a faster disk: computing values anew may take less time than reading them here"));
        }

        private static String gigabytes(double perSecond) {
            return String.format(Locale.ROOT, "%.2f GB/s", perSecond);
        }
    }

    /// The result of one check.
    ///
    /// @param name of the check
    /// @param value the finding, or `unknown`
    /// @param advice one line with the fix, often a command; empty when all is well
    public record CheckResult(String name, String value, String advice) {

        static final String UNKNOWN = "unknown";

        static CheckResult of(String name, String value) {
            return new CheckResult(name, value, "");
        }

        /// @param bad whether the advice is needed
        static CheckResult of(String name, String value, boolean bad, String advice) {
            return new CheckResult(name, value, bad ? advice : "");
        }
    }

    /// How fast a directory's disk is, roughly and within seconds, on the path that a disk tier takes there.
    ///
    /// Files of 32 MiB are written one after the other, eight at most, until two seconds are over; then as much is
    /// read from them, likewise. A disk with memory of its own may answer from that.
    ///
    /// @param writeGigabytes a second, in pieces of 4 MiB, eight on their way
    /// @param readGigabytes a second, likewise
    /// @param path how the bytes travel there, in words
    /// @param inMemory whether the directory lies in memory rather than on a disk
    public record DiskSpeed(double writeGigabytes, double readGigabytes, String path, boolean inMemory) {

        /// Held here, as loggers without a reference forget their level.
        private static final Logger DEVICE = Logger.getLogger("io.kvcache.tiers.device");

        /// Requests on their way at a time: four keep a disk busy with pieces of this size, eight do surely.
        private static final int QUEUE_DEPTH = 8;

        private static final int PIECE_BYTES = 4 << 20;
        private static final long FILE_BYTES = (long) QUEUE_DEPTH * PIECE_BYTES;
        private static final int MAX_FILES = 8;
        private static final long RESERVED_BYTES = 1L << 30;
        private static final long MAX_NANOS = Duration.ofSeconds(2).toNanos();
        private static final long TIMEOUT_NANOS = Duration.ofSeconds(30).toNanos();

        /// Measures, and leaves nothing behind.
        ///
        /// @throws IOException that names the directory: it cannot be written to, or has too little room
        public static DiskSpeed measure(Path folder) throws IOException {
            if (!Files.isDirectory(folder) || !Files.isWritable(folder)) {
                throw new IOException(folder + " is not a directory that can be written to");
            }
            if (Files.getFileStore(folder).getUsableSpace() < MAX_FILES * FILE_BYTES + RESERVED_BYTES) {
                throw new IOException(folder + " has too little room: 1.3 GiB have to be free");
            }
            List<Path> files = new ArrayList<>();
            DEVICE.setLevel(Level.WARNING); // It would name its path for each file.
            Path own = Files.createTempDirectory(folder, "kvcache-doctor-");
            own.toFile().deleteOnExit(); // Last, as they go in reverse order.
            try (Arena arena = Arena.ofShared()) {
                MemorySegment memory = arena.allocate(FILE_BYTES, PIECE_BYTES);
                Throughput written = new Throughput();
                while (files.size() < MAX_FILES && written.nanos < MAX_NANOS) {
                    Path file = own.resolve("file" + files.size());
                    file.toFile().deleteOnExit();
                    files.add(file);
                    written.add(file, memory, true);
                }
                Throughput read = new Throughput();
                for (Path file : files) {
                    if (read.nanos < MAX_NANOS) {
                        read.add(file, memory, false);
                    }
                }
                boolean inMemory = Files.getFileStore(folder).type().equals("tmpfs");
                return new DiskSpeed(written.gigabytesPerSecond(), read.gigabytesPerSecond(), read.path, inMemory);
            } finally {
                for (Path file : files) {
                    Files.deleteIfExists(file);
                }
                Files.deleteIfExists(own);
                DEVICE.setLevel(null);
            }
        }

        /// Returns whether the measurement bypassed the page cache.
        public boolean isDirect() {
            return path.contains("O_DIRECT");
        }

        /// The throughput over several files, one after the other.
        private static final class Throughput {

            private double bytes;
            private double nanos;
            private String path = "";
            private IoOutcome failure = IoOutcome.DONE;

            /// Moves all of a file, its pieces at once.
            void add(Path file, MemorySegment memory, boolean writes) throws IOException {
                FileDeviceOptions options =
                        FileDeviceOptions.of(file, FILE_BYTES).withDepth(QUEUE_DEPTH);
                try (BlockDevice device = FileDevice.open(options)) {
                    device.register(memory);
                    long start = System.nanoTime();
                    for (long offset = 0; offset < FILE_BYTES; offset += PIECE_BYTES) {
                        MemorySegment piece = memory.asSlice(offset, PIECE_BYTES);
                        boolean queued =
                                writes ? device.write(piece, offset, offset) : device.read(piece, offset, offset);
                        assert queued : "a file has no more pieces than the queue is deep";
                    }
                    await(file, device);
                    nanos += System.nanoTime() - start;
                    bytes += FILE_BYTES;
                    path = device.describe();
                }
            }

            private void await(Path file, BlockDevice device) throws IOException {
                while (device.inFlight() > 0) {
                    int ended = device.await(this::completed, TIMEOUT_NANOS);
                    if (ended == 0 || !failure.isDone()) {
                        throw new IOException(file + ": " + (ended == 0 ? "no answer within 30 s" : failure.cause()));
                    }
                }
            }

            private void completed(long offset, IoOutcome outcome) {
                failure = failure.isDone() ? outcome : failure;
            }

            double gigabytesPerSecond() {
                return bytes / nanos;
            }
        }
    }

    /// Checks the kernel's settings and this process' limits, by the kernel's files.
    ///
    /// @param root of the file system
    /// @param pinnedBytes of memory that disks would have pinned: what a server takes for values by default
    record KernelCheck(Path root, long pinnedBytes) {

        /// The first release whose io_uring the disks can use; and the first with all that makes it fast.
        private static final int[] MIN_RELEASE = {5, 13};

        private static final int[] RECOMMENDED_RELEASE = {6, 1};

        /// The length of the accept queue that the server requests.
        private static final long RECOMMENDED_BACKLOG = 1024;

        /// 10,000 connections, files of disks, and what a JVM opens.
        private static final long RECOMMENDED_OPEN_FILES = 16384;

        /// The kernel's own number; less breaks a JVM with many threads and files.
        private static final long RECOMMENDED_MAP_COUNT = 65530;

        private static final int CAP_IPC_LOCK = 14;
        private static final String THP_DIRECTORY = "sys/kernel/mm/transparent_hugepage/";

        List<CheckResult> run(String release) {
            return List.of(
                    checkRelease(release),
                    checkHugePages(),
                    checkHugePageSetting(
                            "enabled",
                            "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled, so that memory for values has"
                                    + " huge pages"),
                    checkHugePageSetting(
                            "shmem_enabled",
                            "where processes share memory (JVMs on one host): echo advise"
                                    + " >/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
                    checkAtLeast(
                            "vm.max_map_count",
                            readText("proc/sys/vm/max_map_count"),
                            RECOMMENDED_MAP_COUNT,
                            "sysctl -w vm.max_map_count=" + RECOMMENDED_MAP_COUNT),
                    checkLockedMemory(),
                    checkAtLeast(
                            "open files",
                            firstMatch(readText("proc/self/limits"), "Max open files\\s+(\\S+)"),
                            RECOMMENDED_OPEN_FILES,
                            "ulimit -n 65536 (systemd: LimitNOFILE=65536, docker: --ulimit nofile=65536), for 10,000"
                                    + " connections"),
                    checkAtLeast(
                            "somaxconn",
                            readText("proc/sys/net/core/somaxconn"),
                            RECOMMENDED_BACKLOG,
                            "sysctl -w net.core.somaxconn=" + RECOMMENDED_BACKLOG
                                    + ", so that clients that come all at once are let in"));
        }

        private CheckResult checkHugePageSetting(String name, String advice) {
            String setting = readText(THP_DIRECTORY + name);
            boolean off = setting.contains("[never]") || setting.contains("[deny]");
            return CheckResult.of("THP " + name, orUnknown(setting), off, advice);
        }

        /// @param value a number; another word, as `unlimited`, is enough
        private static CheckResult checkAtLeast(String name, String value, long least, String advice) {
            return CheckResult.of(name, orUnknown(value), value.matches("\\d+") && number(value) < least, advice);
        }

        static CheckResult checkRelease(String release) {
            Matcher numbers = Pattern.compile("(\\d+)\\.(\\d+).*").matcher(release);
            if (!numbers.matches()) {
                return CheckResult.of("kernel", release);
            }
            int major = Integer.parseInt(numbers.group(1));
            int minor = Integer.parseInt(numbers.group(2));
            String lack =
                    isOlder(major, minor, MIN_RELEASE) ? "its io_uring is too old, so disks go through threads" : "";
            lack = lack.isEmpty() && isOlder(major, minor, RECOMMENDED_RELEASE)
                    ? "its io_uring interrupts more than it must"
                    : lack;
            return CheckResult.of("kernel", release, !lack.isEmpty(), "run Linux 6.1 or later: " + lack);
        }

        private static boolean isOlder(int major, int minor, int[] release) {
            return major < release[0] || (major == release[0] && minor < release[1]);
        }

        /// Reserved huge pages serve only programs that ask for them, which this one does not.
        private CheckResult checkHugePages() {
            String memory = readText("proc/meminfo");
            String total = firstMatch(memory, "HugePages_Total:\\s+(\\d+)");
            String free = firstMatch(memory, "HugePages_Free:\\s+(\\d+)");
            String size = firstMatch(memory, "Hugepagesize:\\s+(\\d+)");
            if (total.isEmpty() || free.isEmpty() || size.isEmpty()) {
                return CheckResult.of("huge pages", CheckResult.UNKNOWN);
            }
            double gibibytes = number(free) * number(size) / (double) (1 << 20);
            return CheckResult.of(
                    "huge pages",
                    "%s set apart, %s of them free, %s KiB each".formatted(total, free, size),
                    number(free) > 0,
                    String.format(
                            Locale.ROOT,
                            "sysctl -w vm.nr_hugepages=0, unless another program needs them: %.1f GiB lie idle, as the"
                                    + " store uses transparent ones",
                            gibibytes));
        }

        /// Checks the limit on locked memory: the kernel counts the memory that it pins for a disk's requests.
        private CheckResult checkLockedMemory() {
            String limit = firstMatch(readText("proc/self/limits"), "Max locked memory\\s+(\\S+)");
            String capabilities = firstMatch(readText("proc/self/status"), "CapEff:\\s+(\\p{XDigit}+)");
            if (limit.isEmpty() || limit.equals("unlimited")) {
                return CheckResult.of("memlock", orUnknown(limit));
            }
            String value = number(limit) / 1024 + " KiB";
            if (!capabilities.isEmpty() && (Long.parseUnsignedLong(capabilities, 16) >> CAP_IPC_LOCK & 1) == 1) {
                return CheckResult.of("memlock", value + ", does not bind: CAP_IPC_LOCK");
            }
            return CheckResult.of(
                    "memlock",
                    value,
                    number(limit) < pinnedBytes,
                    "ulimit -l unlimited (systemd: LimitMEMLOCK=infinity, docker: --ulimit memlock=-1), so that disks can"
                            + " pin the memory for values");
        }

        private static String orUnknown(String text) {
            return text.isEmpty() ? CheckResult.UNKNOWN : text;
        }

        private static long number(String digits) {
            return Long.parseLong(digits);
        }

        private static String firstMatch(String text, String pattern) {
            Matcher found = Pattern.compile(pattern).matcher(text);
            return found.find() ? found.group(1) : "";
        }

        /// Returns a file's text; empty if the file does not exist. Reads by lines, as that requests kilobytes at
        /// once: a file below `/proc/sys` reports a size of zero, and the kernel answers one read only.
        private String readText(String file) {
            try {
                return String.join("\n", Files.readAllLines(root.resolve(file))).strip();
            } catch (IOException none) {
                return "";
            }
        }

        /// Asks the kernel for a small io_uring, and gives it back.
        static final class IoUringProbe {

            private static final long IO_URING_SETUP = 425;

            /// struct io_uring_params
            private static final long PARAMETERS_BYTES = 120;

            private IoUringProbe() {}

            static CheckResult check() {
                Libc libc = Libc.system();
                try (Arena arena = Arena.ofConfined()) {
                    long parameters =
                            arena.allocate(PARAMETERS_BYTES, Long.BYTES).address();
                    long result = libc.call(LibcFunction.SYSCALL, IO_URING_SETUP, 1L, parameters, 0L, 0L, 0L, 0L);
                    if (result >= 0) {
                        libc.call(LibcFunction.CLOSE, (int) result);
                        return CheckResult.of("io_uring", "allowed");
                    }
                    return check(result);
                }
            }

            /// @param result a negated errno
            static CheckResult check(long result) {
                String advice;
                if (Errno.EPERM.isResult(result)) {
                    advice =
                            "sysctl -w kernel.io_uring_disabled=0, or a seccomp profile for the container that lets io_uring in";
                } else if (Errno.ENOMEM.isResult(result)) {
                    advice = "raise ulimit -l: it has no memory to pin";
                } else {
                    advice = "run Linux 6.1 or later, in a container with a seccomp profile that lets io_uring in";
                }
                return new CheckResult(
                        "io_uring", "refused, " + Errno.nameOf(result) + ": disks go through threads", advice);
            }
        }
    }
}
