package io.kvcache.bench.suite;

import static io.kvcache.bench.disk.Mover.DEVICE;
import static io.kvcache.bench.disk.Mover.DEVICE_INTO_SLOTS;
import static io.kvcache.bench.disk.Mover.DEVICE_WITHOUT_URING;
import static io.kvcache.bench.disk.Mover.FIO_PSYNC;
import static io.kvcache.bench.disk.Mover.FIO_URING;
import static io.kvcache.bench.disk.Mover.STORE;
import static io.kvcache.bench.disk.Pattern.RANDOM_READ;
import static io.kvcache.bench.disk.Pattern.REGION_WRITE;
import static io.kvcache.bench.disk.Place.DISK;
import static io.kvcache.bench.disk.Place.MEMORY;

import io.kvcache.bench.disk.DiskBench;
import io.kvcache.bench.disk.Mover;
import io.kvcache.bench.disk.Pattern;
import io.kvcache.bench.disk.Place;
import io.kvcache.bench.disk.Traffic;
import io.kvcache.bench.disk.Trial;
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
    private static final String FIO_THREADS = "fio psync x " + DiskBench.DEPTH;

    private DiskSuite() {}

    static Suite suite() {
        List<Question> all = Stream.of(inMemory(), onboarding(), withoutUring(), onDisk())
                .flatMap(List::stream)
                .toList();
        return new Suite("disk", "the block device beside fio, 8 requests deep", all);
    }

    /// A pattern and a size, and what to call them.
    private record Kind(Pattern pattern, int mebibytes) {

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

        Trial trial(Mover mover, Place place) {
            return Trial.of(mover, place, pattern, mebibytes << 20);
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
                                "And beside reads into " + DiskBench.DEPTH + " buffers that stay in the cache?",
                                SPEED,
                                speed("acquire", kind.trial(STORE, MEMORY)),
                                speed("device", kind.trial(DEVICE, MEMORY)),
                                new Budget.None())))
                .toList();
    }

    private static Question onboarding(String name, Kind kind, Place place) {
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
        Trial ours = kind.trial(DEVICE, DISK);
        Trial fio = kind.trial(FIO_URING, DISK);
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
                speed("fio once more", fio.again()),
                new Budget.None()));
        questions.add(new Question(
                "queue-" + kind.name(),
                "How full is the disk's queue meanwhile?",
                "requests",
                moved("on their way", ours, Traffic::inFlight),
                new Measure.Counted("depth", () -> DiskBench.DEPTH),
                OCCUPANCY));
        questions.add(new Question(
                "cpu-" + kind.name(),
                "What does a gigabyte cost the processor?",
                "ms/GB",
                moved("device", ours, Traffic::cpuMillisPerGigabyte),
                moved(FIO, fio, Traffic::cpuMillisPerGigabyte),
                CPU));
    }

    private static Measure speed(String name, Trial trial) {
        return moved(name, trial, Traffic::gigabytesPerSecond);
    }

    private static Measure moved(String name, Trial trial, ToDoubleFunction<Traffic> reading) {
        return new Measure.Moved(name, trial, reading);
    }
}
