package io.kvcache.bench.suite;

import static io.kvcache.bench.disk.AccessPattern.RANDOM_READ;
import static io.kvcache.bench.disk.AccessPattern.REGION_WRITE;
import static io.kvcache.bench.disk.IoEngine.DEVICE;
import static io.kvcache.bench.disk.IoEngine.DEVICE_INTO_SLOTS;
import static io.kvcache.bench.disk.IoEngine.DEVICE_WITHOUT_URING;
import static io.kvcache.bench.disk.IoEngine.FIO_PSYNC;
import static io.kvcache.bench.disk.IoEngine.FIO_URING;
import static io.kvcache.bench.disk.IoEngine.STORE;
import static io.kvcache.bench.disk.StorageMedium.DISK;
import static io.kvcache.bench.disk.StorageMedium.MEMORY;

import io.kvcache.bench.disk.AccessPattern;
import io.kvcache.bench.disk.DiskBenchFixture;
import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.IoEngine;
import io.kvcache.bench.disk.StorageMedium;
import io.kvcache.bench.disk.TransferResult;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;

/// What the block device makes of a disk, beside fio.
///
/// Bandwidth has its budget on a file in memory, where no disk swings: a real one may change threefold within
/// a run. What has to hold on it is that its queue is kept full and what a byte costs; its bandwidth stands
/// beside fio's, and fio's beside that of a second run of fio.
final class DiskSuite {

    private static final Budget RAW = new Budget.RatioAtLeast(0.80);
    private static final Budget FALL_BACK = new Budget.RatioAtLeast(0.75);
    private static final Budget OCCUPANCY = new Budget.RatioAtLeast(0.90);
    private static final Budget CPU = new Budget.RatioAtMost(1.30);

    private static final String SPEED = "GB/s";
    private static final String FIO = "fio io_uring";
    private static final String FIO_THREADS = "fio psync x " + DiskBenchFixture.DEPTH;

    private DiskSuite() {}

    static Suite suite() {
        List<Question> all = Stream.of(inMemory(), onboarding(), withoutUring(), onDisk())
                .flatMap(List::stream)
                .toList();
        return new Suite("disk", "the block device beside fio, 8 requests deep", all);
    }

    /// A pattern and a size, and what to call them.
    private record Kind(AccessPattern pattern, int mebibytes) {

        static final List<Kind> ALL = List.of(
                new Kind(RANDOM_READ, 1),
                new Kind(RANDOM_READ, 4),
                new Kind(REGION_WRITE, 1),
                new Kind(REGION_WRITE, 4));

        String name() {
            return (pattern == RANDOM_READ ? "read-" : "write-") + mebibytes + "m";
        }

        String words() {
            return (pattern == RANDOM_READ ? "random reads of " : "region writes of ") + mebibytes + " MiB";
        }

        DiskRun trial(IoEngine mover, StorageMedium place) {
            return DiskRun.of(mover, place, pattern, mebibytes << 20);
        }
    }

    private static List<Question> inMemory() {
        return Kind.ALL.stream()
                .map(kind -> new Question(
                        "memory-" + kind.name(),
                        "How fast are " + kind.words() + " on a file in memory?",
                        SPEED,
                        speed("device", kind.trial(DEVICE, MEMORY)),
                        speed(FIO, kind.trial(FIO_URING, MEMORY)),
                        RAW))
                .toList();
    }

    /// The peer reads into as much memory as the store does. A few buffers that stay in the processor's cache, as fio
    /// has them too, are faster to read into; the second row says how much.
    private static List<Question> onboarding() {
        return Kind.ALL.stream()
                .filter(kind -> kind.pattern == RANDOM_READ)
                .flatMap(kind -> Stream.of(
                        onboarding("onboard-" + kind.name(), kind, MEMORY),
                        onboarding("onboard-disk-" + kind.mebibytes + "m", kind, DISK),
                        new Question(
                                "onboard-cache-" + kind.mebibytes + "m",
                                "And beside reads into " + DiskBenchFixture.DEPTH + " buffers that stay in the cache?",
                                SPEED,
                                speed("acquire", kind.trial(STORE, MEMORY)),
                                speed("device", kind.trial(DEVICE, MEMORY)),
                                new Budget.None())))
                .toList();
    }

    private static Question onboarding(String name, Kind kind, StorageMedium place) {
        return new Question(
                name,
                "And when a request acquires blocks of " + kind.mebibytes + " MiB from there?",
                SPEED,
                speed("acquire", kind.trial(STORE, place)),
                speed("device to slots", kind.trial(DEVICE_INTO_SLOTS, place)),
                RAW);
    }

    private static List<Question> withoutUring() {
        return Kind.ALL.stream()
                .map(kind -> new Question(
                        "denied-" + kind.name(),
                        "And where the kernel denies io_uring?",
                        SPEED,
                        speed("device", kind.trial(DEVICE_WITHOUT_URING, MEMORY)),
                        speed(FIO_THREADS, kind.trial(FIO_PSYNC, MEMORY)),
                        FALL_BACK))
                .toList();
    }

    private static List<Question> onDisk() {
        List<Question> questions = new ArrayList<>();
        Kind.ALL.forEach(kind -> addOnDisk(kind, questions));
        return questions;
    }

    private static void addOnDisk(Kind kind, List<Question> questions) {
        DiskRun ours = kind.trial(DEVICE, DISK);
        DiskRun fio = kind.trial(FIO_URING, DISK);
        questions.add(new Question(
                "disk-" + kind.name(),
                "How fast are " + kind.words() + " on a disk?",
                SPEED,
                speed("device", ours),
                speed(FIO, fio),
                new Budget.None()));
        questions.add(new Question(
                "control-" + kind.name(),
                "And how fast is fio beside itself?",
                SPEED,
                speed(FIO, fio),
                speed("fio once more", fio.repeated()),
                new Budget.None()));
        questions.add(new Question(
                "queue-" + kind.name(),
                "How full is the disk's queue meanwhile?",
                "requests",
                moved("on their way", ours, TransferResult::inFlight),
                new Measure.Counted("depth", () -> DiskBenchFixture.DEPTH),
                OCCUPANCY));
        questions.add(new Question(
                "cpu-" + kind.name(),
                "What does a gigabyte cost the processor?",
                "ms/GB",
                moved("device", ours, TransferResult::cpuMillisPerGigabyte),
                moved(FIO, fio, TransferResult::cpuMillisPerGigabyte),
                CPU));
    }

    private static Measure speed(String name, DiskRun trial) {
        return moved(name, trial, TransferResult::gigabytesPerSecond);
    }

    private static Measure moved(String name, DiskRun trial, ToDoubleFunction<TransferResult> reading) {
        return new Measure.Moved(name, trial, reading);
    }
}
