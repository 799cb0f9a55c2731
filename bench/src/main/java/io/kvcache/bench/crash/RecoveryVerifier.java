package io.kvcache.bench.crash;

import io.kvcache.bench.crash.StepCrashProcess.CrashStep;
import io.kvcache.bench.crash.StepCrashProcess.TestContent;
import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Verifies what a killed process left on disk.
///
/// If the disk is large enough, all entries put before the last flush and not touched later must be there. Entries
/// dropped before it must not be there. Entries touched later may be in the old or the new state. Every entry that
/// is there must have the bytes that were put.
public final class RecoveryVerifier {

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
    public record Findings(long promised, long missing, long wrong, long resurrected) {

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
