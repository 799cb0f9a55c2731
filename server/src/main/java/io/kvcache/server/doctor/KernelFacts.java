package io.kvcache.server.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// What the kernel's files say of its settings and of this process' limits.
///
/// @param root of the file system
/// @param pinnedBytes of memory that disks would have pinned: what a server takes for values when nobody tells it
record KernelFacts(Path root, long pinnedBytes) {

    /// The first release whose io_uring the disks can use; and the first with all that makes it fast.
    private static final int[] OLDEST = {5, 13};

    private static final int[] GOOD = {6, 1};

    /// What the server asks to have waiting.
    private static final long BACKLOG = 1024;

    /// 10,000 connections, files of disks, and what a JVM opens.
    private static final long FILES = 16384;

    /// The kernel's own number; less breaks a JVM with many threads and files.
    private static final long MAPS = 65530;

    private static final int CAP_IPC_LOCK = 14;
    private static final String HUGE = "sys/kernel/mm/transparent_hugepage/";

    List<Fact> all(String release) {
        return List.of(kernel(release), huge(), transparent(), shared(), maps(), locked(), files(), backlog());
    }

    static Fact kernel(String release) {
        Matcher numbers = Pattern.compile("(\\d+)\\.(\\d+).*").matcher(release);
        if (!numbers.matches()) {
            return Fact.of("kernel", release);
        }
        int major = Integer.parseInt(numbers.group(1));
        int minor = Integer.parseInt(numbers.group(2));
        String lack = before(major, minor, OLDEST) ? "its io_uring is too old, so disks go through threads" : "";
        lack = lack.isEmpty() && before(major, minor, GOOD) ? "its io_uring interrupts more than it must" : lack;
        return Fact.of("kernel", release, !lack.isEmpty(), "run Linux 6.1 or later: " + lack);
    }

    private static boolean before(int major, int minor, int[] release) {
        return major < release[0] || (major == release[0] && minor < release[1]);
    }

    /// Pages that are set apart, which nobody but those who ask for them can use: we do not.
    private Fact huge() {
        String memory = text("proc/meminfo");
        String total = first(memory, "HugePages_Total:\\s+(\\d+)");
        String free = first(memory, "HugePages_Free:\\s+(\\d+)");
        String size = first(memory, "Hugepagesize:\\s+(\\d+)");
        if (total.isEmpty() || free.isEmpty() || size.isEmpty()) {
            return Fact.of("huge pages", Fact.UNKNOWN);
        }
        double gibibytes = number(free) * number(size) / (double) (1 << 20);
        return Fact.of(
                "huge pages",
                "%s set apart, %s of them free, %s KiB each".formatted(total, free, size),
                number(free) > 0,
                String.format(
                        Locale.ROOT,
                        "sysctl -w vm.nr_hugepages=0, unless another program needs them: %.1f GiB lie idle, as the"
                                + " store uses transparent ones",
                        gibibytes));
    }

    private Fact transparent() {
        String setting = text(HUGE + "enabled");
        return Fact.of(
                "THP enabled",
                known(setting),
                setting.contains("[never]"),
                "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled, so that memory for values has huge pages");
    }

    private Fact shared() {
        String setting = text(HUGE + "shmem_enabled");
        return Fact.of(
                "THP shmem_enabled",
                known(setting),
                setting.contains("[never]") || setting.contains("[deny]"),
                "where processes share memory (leases, JVMs on one host): echo advise"
                        + " >/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    }

    private Fact maps() {
        String count = text("proc/sys/vm/max_map_count");
        return Fact.of(
                "vm.max_map_count",
                known(count),
                !count.isEmpty() && number(count) < MAPS,
                "sysctl -w vm.max_map_count=" + MAPS);
    }

    /// Of memory that a disk's requests use, the kernel counts what it pins.
    private Fact locked() {
        String limit = first(text("proc/self/limits"), "Max locked memory\\s+(\\S+)");
        String capabilities = first(text("proc/self/status"), "CapEff:\\s+(\\p{XDigit}+)");
        if (limit.isEmpty() || limit.equals("unlimited")) {
            return Fact.of("memlock", known(limit));
        }
        String value = number(limit) / 1024 + " KiB";
        if (!capabilities.isEmpty() && (Long.parseUnsignedLong(capabilities, 16) >> CAP_IPC_LOCK & 1) == 1) {
            return Fact.of("memlock", value + ", does not bind: CAP_IPC_LOCK");
        }
        return Fact.of(
                "memlock",
                value,
                number(limit) < pinnedBytes,
                "ulimit -l unlimited (systemd: LimitMEMLOCK=infinity, docker: --ulimit memlock=-1), so that disks can"
                        + " pin the memory for values");
    }

    private Fact files() {
        String limit = first(text("proc/self/limits"), "Max open files\\s+(\\S+)");
        return Fact.of(
                "open files",
                known(limit),
                !limit.isEmpty() && !limit.equals("unlimited") && number(limit) < FILES,
                "ulimit -n 65536 (systemd: LimitNOFILE=65536, docker: --ulimit nofile=65536), for 10,000 connections");
    }

    private Fact backlog() {
        String most = text("proc/sys/net/core/somaxconn");
        return Fact.of(
                "somaxconn",
                known(most),
                !most.isEmpty() && number(most) < BACKLOG,
                "sysctl -w net.core.somaxconn=" + BACKLOG + ", so that clients that come all at once are let in");
    }

    private static String known(String text) {
        return text.isEmpty() ? Fact.UNKNOWN : text;
    }

    private static long number(String digits) {
        return Long.parseLong(digits);
    }

    private static String first(String text, String pattern) {
        Matcher found = Pattern.compile(pattern).matcher(text);
        return found.find() ? found.group(1) : "";
    }

    /// What a file says, or nothing where there is none. By lines, as that asks for kilobytes at once: of a file below
    /// `/proc/sys`, which is said to have no size, the kernel gives what one request has room for and no more.
    private String text(String file) {
        try {
            return String.join("\n", Files.readAllLines(root.resolve(file))).strip();
        } catch (IOException none) {
            return "";
        }
    }
}
