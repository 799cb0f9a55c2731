package io.kvcache.bench.suite;

import static io.kvcache.bench.disk.DiskRun.AccessPattern.RANDOM_READ;
import static io.kvcache.bench.disk.DiskRun.AccessPattern.REGION_WRITE;
import static io.kvcache.bench.disk.DiskRun.IoEngine.DEVICE;
import static io.kvcache.bench.disk.DiskRun.IoEngine.DEVICE_INTO_SLOTS;
import static io.kvcache.bench.disk.DiskRun.IoEngine.DEVICE_WITHOUT_URING;
import static io.kvcache.bench.disk.DiskRun.IoEngine.FIO_PSYNC;
import static io.kvcache.bench.disk.DiskRun.IoEngine.FIO_URING;
import static io.kvcache.bench.disk.DiskRun.IoEngine.STORE;
import static io.kvcache.bench.disk.DiskRun.StorageMedium.DISK;
import static io.kvcache.bench.disk.DiskRun.StorageMedium.MEMORY;

import io.kvcache.bench.disk.DiskBenchFixture;
import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoEngine;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;

/// The speed of the block device on a disk, beside fio.
///
/// Bandwidth has its budget on a file in memory, where no disk swings: a real one may change threefold within
/// a run. What has to hold on it is that its queue is kept full and what a byte costs; its bandwidth stands
/// beside fio's, and fio's beside that of a second run of fio.
final class DiskSuite {

    private static final Threshold RAW_SPEED = new Threshold.RatioAtLeast(0.80);
    private static final Threshold FALLBACK_SPEED = new Threshold.RatioAtLeast(0.75);
    private static final Threshold OCCUPANCY = new Threshold.RatioAtLeast(0.90);
    private static final Threshold CPU = new Threshold.RatioAtMost(1.30);

    private static final String SPEED = "GB/s";
    private static final String FIO = "fio io_uring";
    private static final String FIO_THREADS = "fio psync x " + DiskBenchFixture.DEPTH;

    private DiskSuite() {}

    static BenchmarkSuite suite() {
        List<BenchmarkSpec> all = Stream.of(inMemory(), onboarding(), withoutUring(), onDisk())
                .flatMap(List::stream)
                .toList();
        return new BenchmarkSuite("disk", "the block device beside fio, 8 requests deep", all);
    }

    /// A pattern and a size, and what to call them.
    private record AccessKind(AccessPattern pattern, int bytes) {

        static final List<AccessKind> ALL = List.of(
                new AccessKind(RANDOM_READ, 1 << 20),
                new AccessKind(RANDOM_READ, 4 << 20),
                new AccessKind(REGION_WRITE, 1 << 20),
                new AccessKind(REGION_WRITE, 4 << 20));

        /// Parts of blocks: a page, a layer of a latent, a layer of keys and values.
        static final List<AccessKind> PARTS = List.of(
                new AccessKind(RANDOM_READ, 4 << 10),
                new AccessKind(RANDOM_READ, 16 << 10),
                new AccessKind(RANDOM_READ, 64 << 10));

        String name() {
            return (pattern == RANDOM_READ ? "read-" : "write-") + size();
        }

        /// As it is in names: `4k` or `1m`.
        String size() {
            return bytes < 1 << 20 ? (bytes >> 10) + "k" : (bytes >> 20) + "m";
        }

        String words() {
            return (pattern == RANDOM_READ ? "random reads of " : "region writes of ") + DiskRun.sizeInWords(bytes);
        }

        DiskRun trial(IoEngine ioEngine, StorageMedium storageMedium) {
            return DiskRun.of(ioEngine, storageMedium, pattern, bytes);
        }
    }

    private static List<BenchmarkSpec> inMemory() {
        return Stream.concat(
                        AccessKind.ALL.stream().map(kind -> inMemory(kind, RAW_SPEED)),
                        AccessKind.PARTS.stream().map(kind -> inMemory(kind, new Threshold.NoThreshold())))
                .toList();
    }

    private static BenchmarkSpec inMemory(AccessKind kind, Threshold threshold) {
        return new BenchmarkSpec(
                "memory-" + kind.name(),
                "How fast are " + kind.words() + " on a file in memory?",
                SPEED,
                speed("device", kind.trial(DEVICE, MEMORY)),
                speed(FIO, kind.trial(FIO_URING, MEMORY)),
                threshold);
    }

    /// The peer reads into as much memory as the store does. A few buffers that stay in the processor's cache, as fio
    /// has them too, are faster to read into; the second row says how much.
    private static List<BenchmarkSpec> onboarding() {
        return AccessKind.ALL.stream()
                .filter(kind -> kind.pattern == RANDOM_READ)
                .flatMap(kind -> Stream.of(
                        onboarding("onboard-" + kind.name(), kind, MEMORY),
                        onboarding("onboard-disk-" + kind.size(), kind, DISK),
                        new BenchmarkSpec(
                                "onboard-cache-" + kind.size(),
                                "And beside reads into " + DiskBenchFixture.DEPTH + " buffers that stay in the cache?",
                                SPEED,
                                speed("acquire", kind.trial(STORE, MEMORY)),
                                speed("device", kind.trial(DEVICE, MEMORY)),
                                new Threshold.NoThreshold())))
                .toList();
    }

    private static BenchmarkSpec onboarding(String name, AccessKind kind, StorageMedium storageMedium) {
        return new BenchmarkSpec(
                name,
                "And when a request acquires blocks of " + DiskRun.sizeInWords(kind.bytes) + " from there?",
                SPEED,
                speed("acquire", kind.trial(STORE, storageMedium)),
                speed("device to slots", kind.trial(DEVICE_INTO_SLOTS, storageMedium)),
                RAW_SPEED);
    }

    private static List<BenchmarkSpec> withoutUring() {
        return AccessKind.ALL.stream()
                .map(kind -> new BenchmarkSpec(
                        "denied-" + kind.name(),
                        "And where the kernel denies io_uring?",
                        SPEED,
                        speed("device", kind.trial(DEVICE_WITHOUT_URING, MEMORY)),
                        speed(FIO_THREADS, kind.trial(FIO_PSYNC, MEMORY)),
                        FALLBACK_SPEED))
                .toList();
    }

    private static List<BenchmarkSpec> onDisk() {
        List<BenchmarkSpec> questions = new ArrayList<>();
        AccessKind.ALL.forEach(kind -> addOnDisk(kind, questions));
        AccessKind.PARTS.forEach(kind -> addSpeedOnDisk(kind, questions));
        return questions;
    }

    private static void addSpeedOnDisk(AccessKind kind, List<BenchmarkSpec> questions) {
        DiskRun ours = kind.trial(DEVICE, DISK);
        DiskRun fio = kind.trial(FIO_URING, DISK);
        questions.add(new BenchmarkSpec(
                "disk-" + kind.name(),
                "How fast are " + kind.words() + " on a disk?",
                SPEED,
                speed("device", ours),
                speed(FIO, fio),
                new Threshold.NoThreshold()));
        questions.add(new BenchmarkSpec(
                "control-" + kind.name(),
                "And how fast is fio beside itself?",
                SPEED,
                speed(FIO, fio),
                speed("fio once more", fio.repeated()),
                new Threshold.NoThreshold()));
    }

    private static void addOnDisk(AccessKind kind, List<BenchmarkSpec> questions) {
        addSpeedOnDisk(kind, questions);
        DiskRun ours = kind.trial(DEVICE, DISK);
        DiskRun fio = kind.trial(FIO_URING, DISK);
        questions.add(new BenchmarkSpec(
                "queue-" + kind.name(),
                "How full is the disk's queue meanwhile?",
                "requests",
                transfer("on their way", ours, TransferResult::inFlight),
                new MetricSource.ConstantMetric("depth", () -> DiskBenchFixture.DEPTH),
                OCCUPANCY));
        questions.add(new BenchmarkSpec(
                "cpu-" + kind.name(),
                "What does a gigabyte cost the processor?",
                "ms/GB",
                transfer("device", ours, TransferResult::cpuMillisPerGigabyte),
                transfer(FIO, fio, TransferResult::cpuMillisPerGigabyte),
                CPU));
    }

    private static MetricSource speed(String name, DiskRun diskRun) {
        return transfer(name, diskRun, TransferResult::gigabytesPerSecond);
    }

    private static MetricSource transfer(String name, DiskRun diskRun, ToDoubleFunction<TransferResult> reading) {
        return new MetricSource.TransferMetric(name, diskRun, reading);
    }
}
