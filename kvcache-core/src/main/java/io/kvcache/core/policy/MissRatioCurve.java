package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/// What plain LRU would find in memories of several sizes, estimated in one pass from a sample of the keys.
///
/// LRU is a stack: a use is found by every memory that is larger than the bytes of the other keys that were used
/// since. Those are counted among the keys of the sample, whose share of all stands for the rest: a key is in the
/// sample by its hash, so all its uses count or none. The sample begins with all keys and is halved whenever it is
/// full. A few keys that are used all the time would weigh too much where they are in the sample and too little
/// where they are not, so the uses that the sample should have had beside those that it had count as uses of such
/// keys, which every memory finds.
///
/// What was counted is halved as uses go on, so that the answer is about the time of the last few turns of memory.
///
/// Source: Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC construction with SHARDS", FAST 2015, with the
/// adjustment of its section 3.2. Other than there the sizes are given, distances are in bytes, and keys further
/// away than the largest size are forgotten.
///
/// **Threads.** One at a time, but for [#isSampled].
public final class MissRatioCurve {

    /// Keys in the sample: about a megabyte and a half, all in.
    static final int MAX_SAMPLE = 1 << 14;

    /// Keys that are left however often it is thinned. Of a loop that is too long for LRU to find
    /// anything, a thousand keys made it seem to find 2 to 4 %, two thousand less than one.
    static final int MIN_SAMPLE = 1 << 11;

    private static final int SLOTS = 4 * MAX_SAMPLE;
    private static final int SAMPLE_BITS = 24;
    private static final long HASH_MULTIPLIER = 0xD6E8FEB86659FD93L;
    /// Uses, by how often all keys in sight are used, that count fully before what was counted is halved.
    private static final double TURNOVERS_IN_WINDOW = 16;

    private static final double MIN_WINDOW = 1 << 16;

    private final long[] capacities;
    private final double[] hits;
    private double uses;
    private double sampledUses;

    /// Where a key was used last, among slots in the order of time.
    private final Map<Long, Integer> slots = new HashMap<>();

    private final long[] keys = new long[SLOTS + 1];
    private final long[] bytes = new long[SLOTS + 1];
    /// Over `bytes`.
    private final FenwickTree sums = new FenwickTree(SLOTS);

    private int time;
    private int requestStart;
    private int oldest = 1;
    private long held;
    private volatile int sampled = 1 << SAMPLE_BITS;

    /// @param capacities bytes of the memories, at least one, ascending, above 0
    public MissRatioCurve(long... capacities) {
        this.capacities = capacities.clone();
        long before = 0;
        for (long capacity : capacities) {
            if (capacity <= before) {
                throw new IllegalArgumentException(
                        "capacities are " + Arrays.toString(capacities) + "; they must ascend from above 0");
            }
            before = capacity;
        }
        hits = new double[capacities.length];
    }

    /// What is known of one size.
    ///
    /// @param bytes of memory
    /// @param hitRatio of LRU, of the uses that were counted
    public record Point(long bytes, double hitRatio) {}

    /// Whether the uses of a key are looked at. Those of other keys are told to [#addUnsampled]. Any thread.
    public boolean isSampled(long key) {
        long mixed = key * HASH_MULTIPLIER;
        mixed = (mixed ^ mixed >>> 32) * HASH_MULTIPLIER;
        return (int) (mixed >>> (Long.SIZE - SAMPLE_BITS)) < sampled;
    }

    /// The uses that follow are of another request. What one request uses does not push apart what it uses.
    public void startRequest() {
        requestStart = time;
    }

    /// Adds uses of keys that are not in the sample.
    public void addUnsampled(long count) {
        uses += count;
    }

    /// A key is used; counts, whether LRU would have had it or not.
    ///
    /// @param key spread evenly, as digests are
    /// @param size its bytes of memory, above 0
    public void recordUse(long key, long size) {
        uses++;
        if (!isSampled(key)) {
            return;
        }
        double weight = 1 / sampleRatio();
        sampledUses += weight;
        Integer before = slots.get(key);
        if (before != null) {
            long between = before > requestStart ? 0 : sums.sum(requestStart) - sums.sum(before);
            double distance = between * weight + size;
            for (int i = 0; i < capacities.length; i++) {
                hits[i] += capacities[i] >= distance ? weight : 0;
            }
        }
        touch(key, size);
        forget();
    }

    /// A key is used in a way that says nothing of hits: it is written over, or used on the way to another one.
    public void touch(long key, long size) {
        if (!isSampled(key)) {
            return;
        }
        Integer before = slots.remove(key);
        if (before != null) {
            empty(before);
        }
        if (time == SLOTS) {
            compact();
        }
        time++;
        keys[time] = key;
        bytes[time] = size;
        held += size;
        sums.add(time, size);
        slots.put(key, time);
        while (slots.size() > MAX_SAMPLE) {
            halveSample();
        }
        trim();
    }

    /// The sizes and what LRU would find in them.
    public Point[] points() {
        Point[] points = new Point[capacities.length];
        for (int i = 0; i < points.length; i++) {
            double found = hits[i] + uses - sampledUses;
            points[i] = new Point(capacities[i], uses == 0 ? 0 : Math.clamp(found / uses, 0, 1));
        }
        return points;
    }

    /// Uses that the answer is about; older ones count less.
    public long uses() {
        return Math.round(uses);
    }

    /// Share of the keys that are in the sample.
    public double sampleRatio() {
        return (double) sampled / (1 << SAMPLE_BITS);
    }

    /// Keys of the sample that are held.
    int size() {
        return slots.size();
    }

    private void forget() {
        double window = Math.max(MIN_WINDOW, TURNOVERS_IN_WINDOW * slots.size() / sampleRatio());
        if (uses > 2 * window) {
            uses /= 2;
            sampledUses /= 2;
            for (int i = 0; i < hits.length; i++) {
                hits[i] /= 2;
            }
        }
    }

    /// Keys that no size would still hold.
    private void trim() {
        double most = capacities[capacities.length - 1] * sampleRatio();
        while (oldest < time && held - oldestBytes() > most) {
            slots.remove(keys[oldest]);
            empty(oldest);
        }
    }

    private long oldestBytes() {
        while (oldest < time && bytes[oldest] == 0) {
            oldest++;
        }
        return bytes[oldest];
    }

    /// Looks at half as many keys from now on, unless that would be too few: a store that uses so few keys
    /// so often that looking at each use costs as much as the use.
    public void reduceSample() {
        if (slots.size() >= 2 * MIN_SAMPLE) {
            halveSample();
        }
    }

    private void halveSample() {
        sampled /= 2;
        for (int at = oldest; at <= time; at++) {
            if (bytes[at] > 0 && !isSampled(keys[at])) {
                slots.remove(keys[at]);
                empty(at);
            }
        }
    }

    /// Moves what is there to the first slots. The order stays, and so do distances.
    private void compact() {
        int end = 0;
        int startsAt = 0;
        for (int at = 1; at <= time; at++) {
            if (bytes[at] > 0) {
                end++;
                keys[end] = keys[at];
                bytes[end] = bytes[at];
                slots.put(keys[end], end);
            }
            startsAt = at <= requestStart ? end : startsAt;
        }
        Arrays.fill(bytes, end + 1, bytes.length, 0);
        sums.clear();
        for (int at = 1; at <= end; at++) {
            sums.add(at, bytes[at]);
        }
        time = end;
        requestStart = startsAt;
        oldest = 1;
    }

    private void empty(int at) {
        held -= bytes[at];
        sums.add(at, -bytes[at]);
        bytes[at] = 0;
    }

    /// Sums over the first places of a row of numbers, in the logarithm of its length: what stack distances are
    /// counted with.
    ///
    /// Source: Fenwick: "A new data structure for cumulative frequency tables", Software: Practice and
    /// Experience 1994.
    ///
    /// **Threads.** One at a time.
    public static final class FenwickTree {

        private final long[] tree;

        /// All zero.
        ///
        /// @param places numbered from 1 on, to here
        public FenwickTree(int places) {
            tree = new long[places + 1];
        }

        /// Adds to the number at a place.
        public void add(int place, long change) {
            for (int i = place; i < tree.length; i += i & -i) {
                tree[i] += change;
            }
        }

        /// The sum of the numbers up to a place, 0 for place 0.
        public long sum(int until) {
            long sum = 0;
            for (int at = until; at > 0; at -= at & -at) {
                sum += tree[at];
            }
            return sum;
        }

        /// Makes all zero.
        public void clear() {
            Arrays.fill(tree, 0);
        }
    }
}
