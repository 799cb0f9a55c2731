package io.kvcache.bench.crash;

import io.kvcache.bench.store.DeviceLogSilencer;
import io.kvcache.bench.store.ScratchDirectory;
import io.kvcache.tiers.TieredKvCache;
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

    /// @param folder where a directory is made and removed
    /// @param told of each round
    public CrashTestRunner(Path folder, long seed, Consumer<CrashRound> told) {
        this.folder = folder;
        this.seed = seed;
        this.listener = told;
    }

    /// Runs so many rounds.
    ///
    /// @return whether all of them passed
    public boolean run(int rounds) throws IOException {
        DeviceLogSilencer.silence();
        Path directory = folder.resolve("crash-tier");
        ScratchDirectory.requireEmpty(directory);
        boolean passed = true;
        try {
            for (int number = 0; number < rounds; number++) {
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
}
