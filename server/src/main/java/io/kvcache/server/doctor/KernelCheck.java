package io.kvcache.server.doctor;

import io.kvcache.server.doctor.SystemCheck.CheckResult;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

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
                checkTransparentHugePages(),
                checkSharedHugePages(),
                checkMapCount(),
                checkLockedMemory(),
                checkOpenFiles(),
                checkBacklog());
    }

    static CheckResult checkRelease(String release) {
        Matcher numbers = Pattern.compile("(\\d+)\\.(\\d+).*").matcher(release);
        if (!numbers.matches()) {
            return CheckResult.of("kernel", release);
        }
        int major = Integer.parseInt(numbers.group(1));
        int minor = Integer.parseInt(numbers.group(2));
        String lack = isOlder(major, minor, MIN_RELEASE) ? "its io_uring is too old, so disks go through threads" : "";
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

    private CheckResult checkTransparentHugePages() {
        String setting = readText(THP_DIRECTORY + "enabled");
        return CheckResult.of(
                "THP enabled",
                orUnknown(setting),
                setting.contains("[never]"),
                "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled, so that memory for values has huge pages");
    }

    private CheckResult checkSharedHugePages() {
        String setting = readText(THP_DIRECTORY + "shmem_enabled");
        return CheckResult.of(
                "THP shmem_enabled",
                orUnknown(setting),
                setting.contains("[never]") || setting.contains("[deny]"),
                "where processes share memory (JVMs on one host): echo advise"
                        + " >/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    }

    private CheckResult checkMapCount() {
        String count = readText("proc/sys/vm/max_map_count");
        return CheckResult.of(
                "vm.max_map_count",
                orUnknown(count),
                !count.isEmpty() && number(count) < RECOMMENDED_MAP_COUNT,
                "sysctl -w vm.max_map_count=" + RECOMMENDED_MAP_COUNT);
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

    private CheckResult checkOpenFiles() {
        String limit = firstMatch(readText("proc/self/limits"), "Max open files\\s+(\\S+)");
        return CheckResult.of(
                "open files",
                orUnknown(limit),
                !limit.isEmpty() && !limit.equals("unlimited") && number(limit) < RECOMMENDED_OPEN_FILES,
                "ulimit -n 65536 (systemd: LimitNOFILE=65536, docker: --ulimit nofile=65536), for 10,000 connections");
    }

    private CheckResult checkBacklog() {
        String most = readText("proc/sys/net/core/somaxconn");
        return CheckResult.of(
                "somaxconn",
                orUnknown(most),
                !most.isEmpty() && number(most) < RECOMMENDED_BACKLOG,
                "sysctl -w net.core.somaxconn=" + RECOMMENDED_BACKLOG
                        + ", so that clients that come all at once are let in");
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
                long parameters = arena.allocate(PARAMETERS_BYTES, Long.BYTES).address();
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
