package io.kvcache.bench.crash;

import io.kvcache.bench.crash.StepCrashProcess.CrashStep;
import io.kvcache.bench.crash.StepCrashProcess.TestContent;
import io.kvcache.bench.store.DeviceLogSilencer;
import io.kvcache.bench.store.ScratchDirectory;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.disk.LogAudit;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/// Rounds of killing a process that writes to a disk tier, and looking at what the next opening finds.
///
/// Several rounds share a directory, so that later processes write behind what earlier ones left. In every fourth
/// directory the tier is too small for everything; there nothing has to be present, but nothing may be wrong.
public final class CrashTestRunner {

    private static final int ROUNDS_IN_A_DIRECTORY = 5;
    private static final int TIGHT_ROUND_INTERVAL = 4;

    /// A step takes less, unless it flushes.
    private static final long MAX_DELAY_NANOS = TimeUnit.MILLISECONDS.toNanos(4);

    private final Path folder;
    private final long seed;
    private final Consumer<CrashRound> listener;
    private final List<RecoveryVerifier> aftermaths = new ArrayList<>();
    private volatile boolean stopped;

    /// @param folder where a directory is made and removed
    /// @param told of each round
    public CrashTestRunner(Path folder, long seed, Consumer<CrashRound> told) {
        this.folder = folder;
        this.seed = seed;
        this.listener = told;
    }

    /// Begins no further round. Any thread may call it.
    public void stop() {
        stopped = true;
    }

    /// Runs so many rounds, or fewer when it is stopped.
    ///
    /// @return whether all of them passed
    public boolean run(int rounds) throws IOException {
        DeviceLogSilencer.silence();
        Path directory = folder.resolve("crash-tier");
        ScratchDirectory.requireEmpty(directory);
        boolean passed = true;
        try {
            for (int number = 0; number < rounds && !stopped; number++) {
                int site = number / ROUNDS_IN_A_DIRECTORY;
                if (number % ROUNDS_IN_A_DIRECTORY == 0) {
                    ScratchDirectory.deleteTier(directory);
                    aftermaths.clear();
                }
                boolean tight = site % TIGHT_ROUND_INTERVAL == TIGHT_ROUND_INTERVAL - 1;
                CrashRound round =
                        runRound(number, new CrashDir(directory, tight ? CrashDir.TIGHT_BYTES : CrashDir.ROOMY_BYTES));
                listener.accept(round);
                passed &= round.passed();
            }
        } finally {
            ScratchDirectory.deleteTier(directory);
        }
        return passed;
    }

    private CrashRound runRound(int number, CrashDir site) throws IOException {
        long own = new SplittableRandom(seed + number).nextLong();
        List<CrashStep> script = CrashStep.generate(own);
        int[] said = kill(site, own, script.size());
        int begun = said[0];
        int flushed = said[1];
        aftermaths.add(new RecoveryVerifier(own, script.subList(0, begun + 1), flushed));
        long bad = site.countCorrupt();
        long start = System.nanoTime();
        try (TieredKvCache cache = site.open()) {
            while (cache.isRecovering()) {
                LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(100));
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            RecoveryVerifier.Findings found = aftermaths.stream()
                    .map(recoveryVerifier -> recoveryVerifier.verify(cache))
                    .reduce(RecoveryVerifier.Findings.NOTHING, RecoveryVerifier.Findings::plus);
            cache.validate();
            return new CrashRound(number, site.isRoomy(), begun, flushed, found, bad, seconds);
        }
    }

    /// Answers the last step that was begun, and the last flush that succeeded or -1.
    private static int[] kill(CrashDir site, long own, int steps) throws IOException {
        SplittableRandom random = new SplittableRandom(~own);
        String moment = "begin " + random.nextInt(steps);
        int[] said = {-1, -1};
        try (CrashProcess crashProcess = CrashProcess.start(
                StepCrashProcess.class,
                List.of(site.directory().toString(), String.valueOf(site.bytes()), String.valueOf(own)))) {
            crashProcess.awaitLine(moment::equals, line -> onLine(line, said));
            LockSupport.parkNanos(random.nextLong(MAX_DELAY_NANOS));
            crashProcess.kill(line -> onLine(line, said));
        }
        return said;
    }

    private static void onLine(String line, int[] said) {
        int space = line.indexOf(' ');
        int number = Integer.parseInt(line.substring(space + 1));
        said[line.startsWith("begin") ? 0 : 1] = number;
    }

    /// The result of a round: a process was killed, and its directory opened again.
    ///
    /// @param roomy whether the tier is large enough for everything
    /// @param begun the last step that the process began
    /// @param flushed its last flush, or -1
    /// @param found over all rounds in the same directory
    /// @param corrupt blocks and objects by `fsck`, before the opening
    /// @param reopenSeconds until all that the disk holds was known again
    public record CrashRound(
            int number,
            boolean roomy,
            int begun,
            int flushed,
            RecoveryVerifier.Findings found,
            long corrupt,
            double reopenSeconds) {

        /// Nothing wrong, nothing missing that has to be there, nothing bad on the disk.
        public boolean passed() {
            return found.wrong() == 0 && found.resurrected() == 0 && corrupt == 0 && (!roomy || found.missing() == 0);
        }

        /// Blocks and objects that were flushed and have to be there.
        public long promised() {
            return roomy ? found.promised() : 0;
        }

        public long missing() {
            return roomy ? found.missing() : 0;
        }

        public long wrong() {
            return found.wrong();
        }

        public long resurrected() {
            return found.resurrected();
        }
    }

    /// The directory of a tier in which processes are killed.
    ///
    /// @param bytes of the tier
    record CrashDir(Path directory, long bytes) {

        /// Takes in all that the rounds between two clearings write, so that nothing of it is evicted.
        static final long ROOMY_BYTES = 256L << 20;

        /// Reclaims regions within a round.
        static final long TIGHT_BYTES = 8L << 20;

        /// Four slabs for each of the four classes of slots, so that no class takes one from another.
        private static final long HOST_BYTES = 256L << 20;

        static CrashDir of(String directory, long bytes) {
            return new CrashDir(Path.of(directory), bytes);
        }

        /// Opens a store there.
        TieredKvCache open() {
            TieredKvCache cache = TieredKvCache.builder()
                    .hostBytes(HOST_BYTES)
                    .prefaultInBackground(false)
                    .failOnLeak(true)
                    .admission(AdmissionKind.ALWAYS)
                    .disk(directory, bytes)
                    .build();
            cache.register(TestContent.BLOCKS);
            cache.register(TestContent.OBJECTS);
            return cache;
        }

        /// Blocks and objects whose bytes are bad, as `fsck` finds them.
        long countCorrupt() {
            try (DiskDirectory opened = DiskDirectory.openExisting(directory, DirectoryOptions.defaults())) {
                return LogAudit.run(opened.device(), LogAudit.Scope.BLOCKS, (_, _) -> {})
                        .corruptEntries();
            }
        }

        /// Returns whether all flushed blocks and objects must be there.
        boolean isRoomy() {
            return bytes >= ROOMY_BYTES;
        }
    }
}
