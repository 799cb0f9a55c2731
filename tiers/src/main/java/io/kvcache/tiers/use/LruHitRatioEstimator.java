package io.kvcache.tiers.use;

import io.kvcache.core.AccessListener;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.MissRatioCurve;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.use.AccessQueue.Access;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// What plain LRU would find in a quarter of the memory to four times as much, alone and with the disks that there are.
///
/// What counts is what was found, in memory or on disk, and what was put because it was not there:
/// all that was of use or could have been. Values that are written over and look-ups that are not
/// followed by a put do not count, so these ratios are not those of the namespaces, which count what
/// is asked for.
///
/// Uses wait for [#drain] or [#report]: some two thousand prompts of 128 blocks, beyond which they
/// are counted as dropped and nothing else. So ask at least as often as those come; a minute apart
/// is usual.
///
/// **Threads.** Any; [#drain] one at a time.
public final class LruHitRatioEstimator implements AccessListener {

    private static final double[] FACTORS = {0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4};
    /// Slots are whole pages.
    private static final long PAGE = 4096;
    /// 24 bytes each in a chain, some more for single ones: about 30 MB at the worst.
    private static final int MAX_QUEUED_KEYS = 1 << 18;
    /// Uses of one key each, in one look, that the sample is thinned for: two hundredths of a
    /// processor when it looks ten times a second.
    private static final int MAX_SINGLE_ACCESSES = 1 << 13;

    /// Of memory alone, and of memory with the disks. One of all sizes would look at too few keys of memory beside
    /// disks that are much larger.
    private final List<MissRatioCurve> curves;

    private final AccessQueue queue = new AccessQueue(MAX_QUEUED_KEYS);
    private final LongAdder skipped = new LongAdder();

    /// Has one listen to an embedded store from now on, for as long as that is open.
    public static LruHitRatioEstimator of(TieredKvCache cache) {
        LruHitRatioEstimator curve = new LruHitRatioEstimator(
                cache.stats().host().capacityBytes(),
                cache.diskStats().stream()
                        .mapToLong(disk -> disk.tier().capacityBytes())
                        .sum());
        cache.addAccessListener(curve);
        return curve;
    }

    /// One that hears nothing until it is told.
    ///
    /// @param memoryBytes of host memory there is
    /// @param diskBytes of disks there is
    public LruHitRatioEstimator(long memoryBytes, long diskBytes) {
        curves = (diskBytes == 0 ? LongStream.of(0) : LongStream.of(0, diskBytes))
                .mapToObj(more -> new MissRatioCurve(Arrays.stream(FACTORS)
                        .mapToLong(factor -> (long) (factor * memoryBytes) + more)
                        .toArray()))
                .toList();
    }

    /// What is known.
    ///
    /// @param uses that the answer is about, the latest ones; 0 when nothing was used yet
    /// @param sampledShare of the keys, that were looked at
    /// @param dropped uses that were not looked at because there were too many at a time
    public record Report(List<Size> sizes, long uses, double sampledShare, long dropped) {}

    /// One size of memory.
    ///
    /// @param factor of the memory there is
    /// @param lruHitRatio what LRU would find in it, of what was found or put
    /// @param lruHitRatioWithDisks what LRU would find in it and on the disks together
    public record Size(double factor, long bytes, double lruHitRatio, double lruHitRatioWithDisks) {}

    @Override
    public void onAccess(BlockChain chain, int from, int found, int blockBytes) {
        if (found > 0) {
            queue.offer(new Access.ChainLookup(0, chain, from, found, blockBytes));
        }
    }

    @Override
    public void onAccess(LookupKind lookupKind, Namespace namespace, BlockKey key, long bytes) {
        if (lookupKind == LookupKind.GET && bytes >= 0) {
            if (isSampled(key)) {
                queue.offer(new Access.KeyLookup(0, lookupKind, namespace, key, bytes));
            } else {
                skipped.increment();
            }
        }
    }

    @Override
    public void onPut(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces) {
        if (isSampled(key)) {
            queue.offer(new Access.Put(0, namespace, key, after, bytes, replaces));
        } else if (!replaces) {
            skipped.increment();
        }
    }

    private boolean isSampled(BlockKey key) {
        return curves.getFirst().isSampled(key.lo()) || curves.getLast().isSampled(key.lo());
    }

    /// Looks at what was used since the last time.
    public synchronized void drain() {
        long unsampled = skipped.sumThenReset();
        curves.forEach(curve -> curve.addUnsampled(unsampled));
        int single = 0;
        // Callers that use the store faster than this estimates do not hold it up.
        for (int left = MAX_QUEUED_KEYS; left > 0; left--) {
            Access access = queue.poll();
            if (access == null) {
                break;
            }
            curves.forEach(curve -> record(curve, access));
            single += access instanceof Access.ChainLookup ? 0 : 1;
        }
        if (single > MAX_SINGLE_ACCESSES) {
            curves.forEach(MissRatioCurve::reduceSample);
        }
    }

    private static void record(MissRatioCurve curve, Access access) {
        curve.startRequest();
        switch (access) {
            case Access.ChainLookup asked -> record(curve, asked);
            case Access.KeyLookup asked -> curve.recordUse(asked.key().lo(), pages(asked.bytes()));
            case Access.Put put -> {
                if (put.replaces()) {
                    curve.touch(put.key().lo(), pages(put.bytes()));
                } else {
                    curve.recordUse(put.key().lo(), pages(put.bytes()));
                }
            }
        }
    }

    /// From the last to the first, so that no block is older than the one behind it.
    private static void record(MissRatioCurve curve, Access.ChainLookup asked) {
        long bytes = pages(asked.blockBytes());
        for (int i = asked.from() + asked.found() - 1; i >= asked.from(); i--) {
            curve.recordUse(asked.chain().keyLo(i), bytes);
        }
        for (int i = asked.from() - 1; i >= 0; i--) {
            curve.touch(asked.chain().keyLo(i), bytes);
        }
    }

    /// What is known by now.
    public synchronized Report report() {
        drain();
        MissRatioCurve memory = curves.getFirst();
        MissRatioCurve.Point[] points = memory.points();
        MissRatioCurve.Point[] withDisks = curves.getLast().points();
        List<Size> sizes = IntStream.range(0, points.length)
                .mapToObj(i -> new Size(FACTORS[i], points[i].bytes(), points[i].hitRatio(), withDisks[i].hitRatio()))
                .toList();
        return new Report(sizes, memory.uses(), memory.sampleRatio(), queue.dropped());
    }

    private static long pages(long bytes) {
        return Math.ceilDiv(Math.max(1, bytes), PAGE) * PAGE;
    }
}
