package io.kvcache.bench.crash;

import io.kvcache.bench.crash.StepCrashProcess.CrashStep;
import io.kvcache.bench.crash.StepCrashProcess.TestContent;
import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.disk.LogAudit;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

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
        TierReplay.silenceTiers();
        Path directory = folder.resolve("crash-tier");
        TierReplay.requireEmpty(directory);
        boolean passed = true;
        try {
            for (int number = 0; number < rounds && !stopped; number++) {
                int site = number / ROUNDS_IN_A_DIRECTORY;
                if (number % ROUNDS_IN_A_DIRECTORY == 0) {
                    TierReplay.deleteTier(directory);
                    aftermaths.clear();
                }
                boolean tight = site % TIGHT_ROUND_INTERVAL == TIGHT_ROUND_INTERVAL - 1;
                CrashRound round =
                        runRound(number, new CrashDir(directory, tight ? CrashDir.TIGHT_BYTES : CrashDir.ROOMY_BYTES));
                listener.accept(round);
                passed &= round.passed();
            }
        } finally {
            TierReplay.deleteTier(directory);
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

    /// Verifies what a killed process left on disk.
    ///
    /// If the disk is large enough, all entries put before the last flush and not touched later must be there.
    /// Entries dropped before it must not be there. Entries touched later may be in the old or the new state.
    /// Every entry that is there must have the bytes that were put.
    private static final class RecoveryVerifier {

        private static final Duration TIMEOUT = Duration.ofSeconds(60);

        private final TestContent testContent;
        private final List<CrashStep> taken;
        private final int flushed;
        private long promised;
        private long missing;
        private long wrong;
        private long resurrected;

        /// @param taken the steps that the process began
        /// @param flushed the last flush that succeeded, or -1
        RecoveryVerifier(long seed, List<CrashStep> taken, int flushed) {
            testContent = new TestContent(seed);
            this.taken = List.copyOf(taken);
            this.flushed = flushed;
        }

        /// The counts of a verification.
        ///
        /// @param promised blocks and objects that were flushed and not touched later
        /// @param missing of these, not there
        /// @param wrong blocks and objects with other bytes
        /// @param resurrected that were dropped before a flush, and are back
        record Findings(long promised, long missing, long wrong, long resurrected) {

            static final Findings NOTHING = new Findings(0, 0, 0, 0);

            Findings plus(Findings other) {
                return new Findings(
                        promised + other.promised,
                        missing + other.missing,
                        wrong + other.wrong,
                        resurrected + other.resurrected);
            }
        }

        /// Looks at everything.
        Findings verify(TieredKvCache cache) {
            promised = 0;
            missing = 0;
            wrong = 0;
            resurrected = 0;
            Map<Integer, CrashStep> drops = new HashMap<>();
            Map<Integer, List<CrashStep>> objects = new HashMap<>();
            for (CrashStep step : taken) {
                switch (step.kind()) {
                    case DROP_CHAIN -> drops.put(step.target(), step);
                    case PUT_OBJECT, DROP_OBJECT ->
                        objects.computeIfAbsent(step.target(), _ -> new ArrayList<>())
                                .add(step);
                    case PUT_CHAIN, FLUSH -> {}
                }
            }
            for (CrashStep step : taken) {
                if (step.kind() == CrashStep.Kind.PUT_CHAIN) {
                    verifyChain(cache, step, drops.get(step.target()));
                }
            }
            objects.values().forEach(history -> verifyObject(cache, history));
            return new Findings(promised, missing, wrong, resurrected);
        }

        private void verifyChain(TieredKvCache cache, CrashStep put, @Nullable CrashStep drop) {
            BlockChain chain = testContent.chain(put.target(), put.size());
            int left = drop == null || drop.size() == 0 ? put.size() : drop.size();
            int certain = put.number() > flushed ? 0 : left;
            int possible = drop == null || drop.number() > flushed ? put.size() : left;
            promised += certain;
            try (BlockTable table = cache.acquire(chain, 0, TIMEOUT)) {
                int ready = table.await(put.size(), TIMEOUT);
                missing += Math.max(0, certain - ready);
                resurrected += Math.max(0, ready - possible);
                for (int i = 0; i < ready; i++) {
                    wrong += TestContent.matches(chain, i, table.segment(i)) ? 0 : 1;
                }
            }
        }

        /// @param history what was done to one object
        private void verifyObject(TieredKvCache cache, List<CrashStep> history) {
            List<CrashStep> later =
                    history.stream().filter(step -> step.number() > flushed).toList();
            List<CrashStep> before =
                    history.stream().filter(step -> step.number() < flushed).toList();
            List<CrashStep> possible = new ArrayList<>(later);
            if (!before.isEmpty()) {
                possible.add(before.getLast());
            }
            possible.removeIf(step -> step.kind() != CrashStep.Kind.PUT_OBJECT);
            boolean certain = later.isEmpty() && !possible.isEmpty();
            promised += certain ? 1 : 0;
            byte[] key = testContent.objectKey(history.getFirst().target());
            try (ObjectView view = cache.getObject(TestContent.OBJECTS, key, TIMEOUT)) {
                if (view == null) {
                    missing += certain ? 1 : 0;
                } else if (possible.stream().noneMatch(step -> matches(view, step))) {
                    boolean old = history.stream()
                            .filter(step -> step.kind() == CrashStep.Kind.PUT_OBJECT)
                            .anyMatch(step -> matches(view, step));
                    resurrected += old ? 1 : 0;
                    wrong += old ? 0 : 1;
                }
            }
        }

        private boolean matches(ObjectView view, CrashStep put) {
            if (view.bytes() != put.size()) {
                return false;
            }
            MemorySegment bytes = MemorySegment.ofArray(new byte[put.size()]);
            view.copyTo(0, put.size(), bytes);
            return testContent.object(put).mismatch(bytes) < 0;
        }
    }
}
