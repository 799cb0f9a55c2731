package io.kvcache.bench.crash;

import io.kvcache.bench.store.QuietDevices;
import io.kvcache.bench.store.TierFiles;
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
public final class CrashRounds {

    private static final int ROUNDS_IN_A_DIRECTORY = 5;
    private static final int TIGHT_EVERY = 4;

    /// A step takes less, unless it flushes.
    private static final long LONGEST_DELAY_NANOS = TimeUnit.MILLISECONDS.toNanos(4);

    private final Path folder;
    private final long seed;
    private final Consumer<CrashRound> told;
    private final List<Aftermath> aftermaths = new ArrayList<>();

    /// @param folder where a directory is made and removed
    /// @param told of each round
    public CrashRounds(Path folder, long seed, Consumer<CrashRound> told) {
        this.folder = folder;
        this.seed = seed;
        this.told = told;
    }

    /// Runs so many rounds.
    ///
    /// @return whether all of them passed
    public boolean run(int rounds) throws IOException {
        QuietDevices.begin();
        Path directory = folder.resolve("crash-tier");
        TierFiles.requireEmpty(directory);
        boolean passed = true;
        try {
            for (int number = 0; number < rounds; number++) {
                int site = number / ROUNDS_IN_A_DIRECTORY;
                if (number % ROUNDS_IN_A_DIRECTORY == 0) {
                    TierFiles.remove(directory);
                    aftermaths.clear();
                }
                boolean tight = site % TIGHT_EVERY == TIGHT_EVERY - 1;
                CrashRound round =
                        one(number, new CrashSite(directory, tight ? CrashSite.TIGHT_BYTES : CrashSite.ROOMY_BYTES));
                told.accept(round);
                passed &= round.passed();
            }
        } finally {
            TierFiles.remove(directory);
        }
        return passed;
    }

    private CrashRound one(int number, CrashSite site) throws IOException {
        long own = new SplittableRandom(seed + number).nextLong();
        List<Step> script = Step.script(own);
        int[] said = kill(site, own, script.size());
        int begun = said[0];
        int flushed = said[1];
        aftermaths.add(new Aftermath(own, script.subList(0, begun + 1), flushed));
        long bad = site.bad();
        long start = System.nanoTime();
        try (TieredKvCache cache = site.open()) {
            while (cache.isRecovering()) {
                LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(100));
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            Aftermath.Findings found = aftermaths.stream()
                    .map(aftermath -> aftermath.examine(cache))
                    .reduce(Aftermath.Findings.NOTHING, Aftermath.Findings::and);
            cache.validate();
            return new CrashRound(number, site.roomy(), begun, flushed, found, bad, seconds);
        }
    }

    /// Answers the last step that was begun, and the last flush that succeeded or -1.
    private static int[] kill(CrashSite site, long own, int steps) throws IOException {
        SplittableRandom random = new SplittableRandom(~own);
        String moment = "begin " + random.nextInt(steps);
        int[] said = {-1, -1};
        try (Victim victim = Victim.start(
                StepVictim.class,
                List.of(site.directory().toString(), String.valueOf(site.bytes()), String.valueOf(own)))) {
            victim.await(moment::equals, line -> hear(line, said));
            LockSupport.parkNanos(random.nextLong(LONGEST_DELAY_NANOS));
            victim.kill(line -> hear(line, said));
        }
        return said;
    }

    private static void hear(String line, int[] said) {
        int space = line.indexOf(' ');
        int number = Integer.parseInt(line.substring(space + 1));
        said[line.startsWith("begin") ? 0 : 1] = number;
    }
}
