package io.kvcache.bench.disk;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/// What the threads that move bytes have cost so far, user and system time, as the scheduler counts it.
///
/// These are the one that runs a [DeviceIoRunner.DeviceLoadGenerator], the threads of a device without io_uring, and the kernel's
/// workers for io_uring, which are threads of the process too. fio reports its own thread only, so the
/// comparison is in fio's favour.
///
/// @param nanos by thread
record ThreadCpuTimes(Map<String, Long> nanos) {

    /// Of the thread that runs a load, as the kernel knows it: at most 15 letters. The threads of a store's
    /// disks have a number behind, and do not count: stores wait for their next trial meanwhile.
    static final String LOAD_THREAD = "kvcache-disk";

    private static final String DEVICE_WORKER = "kvcache-io-";
    private static final String KERNEL_WORKER = "iou-wrk";
    private static final Path TASKS = Path.of("/proc/self/task");
    private static final Path SELF = Path.of("/proc/thread-self");

    /// At the start of what is measured: the calling thread is read last, as reading costs it something.
    static ThreadCpuTimes atStart() throws IOException {
        Map<String, Long> nanos = new HashMap<>();
        addAll(nanos);
        add(SELF.toRealPath(), nanos);
        return new ThreadCpuTimes(nanos);
    }

    /// At the end of it: the calling thread is read first.
    static ThreadCpuTimes atEnd() throws IOException {
        Map<String, Long> own = new HashMap<>();
        add(SELF.toRealPath(), own);
        Map<String, Long> nanos = new HashMap<>();
        addAll(nanos);
        nanos.putAll(own);
        return new ThreadCpuTimes(nanos);
    }

    private static void addAll(Map<String, Long> nanos) throws IOException {
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
            for (Path task : tasks) {
                add(task, nanos);
            }
        }
    }

    private static void add(Path task, Map<String, Long> nanos) throws IOException {
        try {
            String name = Files.readString(task.resolve("comm")).strip();
            if (name.equals(LOAD_THREAD) || name.startsWith(DEVICE_WORKER) || name.startsWith(KERNEL_WORKER)) {
                String times = Files.readString(task.resolve("schedstat"));
                nanos.put(task.getFileName().toString(), Long.valueOf(times.substring(0, times.indexOf(' '))));
            }
        } catch (NoSuchFileException ended) {
            // It has ended meanwhile.
        }
    }

    /// What was added since then; threads that have ended are left out.
    double secondsSince(ThreadCpuTimes then) {
        long sum = 0;
        for (Map.Entry<String, Long> thread : nanos.entrySet()) {
            sum += thread.getValue() - then.nanos.getOrDefault(thread.getKey(), 0L);
        }
        return sum / 1e9;
    }
}
