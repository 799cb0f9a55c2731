package io.kvcache.bench.crash;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// What a killed process may have left, and what is found of it.
///
/// What was put before its last flush and not touched later has to be there, if the disk is large enough for
/// everything; what was dropped before that may not be. What was touched later may be there as it was then or as
/// it became. Whatever is there has the bytes that were put.
public final class Aftermath {

    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final Contents contents;
    private final List<Step> taken;
    private final int flushed;
    private long promised;
    private long missing;
    private long wrong;
    private long resurrected;

    /// @param taken the steps that the process began
    /// @param flushed the last flush that succeeded, or -1
    Aftermath(long seed, List<Step> taken, int flushed) {
        contents = new Contents(seed);
        this.taken = List.copyOf(taken);
        this.flushed = flushed;
    }

    /// What was found.
    ///
    /// @param promised blocks and objects that were flushed and not touched later
    /// @param missing of these, not there
    /// @param wrong blocks and objects with other bytes
    /// @param resurrected that were dropped before a flush, and are back
    public record Findings(long promised, long missing, long wrong, long resurrected) {

        static final Findings NOTHING = new Findings(0, 0, 0, 0);

        Findings and(Findings other) {
            return new Findings(
                    promised + other.promised,
                    missing + other.missing,
                    wrong + other.wrong,
                    resurrected + other.resurrected);
        }
    }

    /// Looks at everything.
    Findings examine(TieredKvCache cache) {
        promised = 0;
        missing = 0;
        wrong = 0;
        resurrected = 0;
        Map<Integer, Step> drops = new HashMap<>();
        Map<Integer, List<Step>> objects = new HashMap<>();
        for (Step step : taken) {
            switch (step.kind()) {
                case DROP_CHAIN -> drops.put(step.target(), step);
                case PUT_OBJECT, DROP_OBJECT ->
                    objects.computeIfAbsent(step.target(), _ -> new ArrayList<>())
                            .add(step);
                case PUT_CHAIN, FLUSH -> {}
            }
        }
        for (Step step : taken) {
            if (step.kind() == Step.Kind.PUT_CHAIN) {
                examineChain(cache, step, drops.get(step.target()));
            }
        }
        objects.values().forEach(history -> examineObject(cache, history));
        return new Findings(promised, missing, wrong, resurrected);
    }

    private void examineChain(TieredKvCache cache, Step put, @Nullable Step drop) {
        BlockChain chain = contents.chain(put.target(), put.size());
        int left = drop == null || drop.size() == 0 ? put.size() : drop.size();
        int certain = put.number() > flushed ? 0 : left;
        int possible = drop == null || drop.number() > flushed ? put.size() : left;
        promised += certain;
        try (BlockTable table = cache.acquire(chain, 0, PATIENCE_NANOS)) {
            int ready = table.await(put.size(), PATIENCE_NANOS);
            missing += Math.max(0, certain - ready);
            resurrected += Math.max(0, ready - possible);
            for (int i = 0; i < ready; i++) {
                wrong += Contents.right(chain, i, table.segment(i)) ? 0 : 1;
            }
        }
    }

    /// @param history what was done to one object
    private void examineObject(TieredKvCache cache, List<Step> history) {
        List<Step> later =
                history.stream().filter(step -> step.number() > flushed).toList();
        List<Step> before =
                history.stream().filter(step -> step.number() < flushed).toList();
        List<Step> possible = new ArrayList<>(later);
        if (!before.isEmpty()) {
            possible.add(before.getLast());
        }
        possible.removeIf(step -> step.kind() != Step.Kind.PUT_OBJECT);
        boolean certain = later.isEmpty() && !possible.isEmpty();
        promised += certain ? 1 : 0;
        byte[] key = contents.objectKey(history.getFirst().target());
        try (ObjectView view = cache.getObject(Contents.OBJECTS, key, PATIENCE_NANOS)) {
            if (view == null) {
                missing += certain ? 1 : 0;
            } else if (possible.stream().noneMatch(step -> matches(view, step))) {
                boolean old = history.stream()
                        .filter(step -> step.kind() == Step.Kind.PUT_OBJECT)
                        .anyMatch(step -> matches(view, step));
                resurrected += old ? 1 : 0;
                wrong += old ? 0 : 1;
            }
        }
    }

    private boolean matches(ObjectView view, Step put) {
        if (view.bytes() != put.size()) {
            return false;
        }
        MemorySegment bytes = MemorySegment.ofArray(new byte[put.size()]);
        view.copyTo(0, put.size(), bytes);
        return contents.object(put).mismatch(bytes) < 0;
    }
}
