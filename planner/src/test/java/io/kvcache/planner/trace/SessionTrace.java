package io.kvcache.planner.trace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;

/// Eight hours of sessions that return, and in the middle of them prompts that never do: a scan.
///
/// Each session comes back after about as long as its user thinks, with all that was said before
/// and a block more. After some turns it begins anew. The same seed gives the same trace on every
/// machine.
public final class SessionTrace {

    /// Hours that the sessions go on.
    public static final int HOURS = 8;

    private static final long HOUR_MILLIS = 3_600_000;

    /// Users think for 2.5 to 7.5 minutes.
    private static final long THINK_MILLIS = 300_000;

    private static final int FIRST_BLOCKS = 8;
    private static final int TURNS = 32;
    private static final int SCAN_PROMPT_BLOCKS = 40;

    /// From hour 5 on, for ten minutes.
    private static final long SCAN_MILLIS = 5 * HOUR_MILLIS;

    private static final long SCAN_LASTS_MILLIS = 600_000;

    private final Random random;
    private final List<TraceRequest> requests = new ArrayList<>();
    private long nextId;

    private SessionTrace(long seed) {
        random = new Random(seed);
    }

    /// When the scan is over, in milliseconds from the start.
    public static long scanEndMillis() {
        return SCAN_MILLIS + SCAN_LASTS_MILLIS;
    }

    /// Makes one.
    ///
    /// @param sessions that go on side by side
    /// @param scanBlocks in prompts that come once, 0 for no scan
    public static Trace of(int sessions, int scanBlocks, long seed) {
        SessionTrace made = new SessionTrace(seed);
        for (int session = 0; session < sessions; session++) {
            made.session();
        }
        made.scan(scanBlocks);
        made.requests.sort(Comparator.comparingLong(TraceRequest::timestampMillis));
        return new Trace(sessions + " sessions, a scan of " + scanBlocks + " blocks", made.requests);
    }

    private void session() {
        long[] ids = {};
        long at = random.nextLong(THINK_MILLIS);
        for (int turn = random.nextInt(TURNS); at < HOURS * HOUR_MILLIS; turn++) {
            if (ids.length == 0 || turn % TURNS == 0) {
                ids = fresh(FIRST_BLOCKS);
            } else {
                long[] longer = Arrays.copyOf(ids, ids.length + 1);
                longer[ids.length] = nextId++;
                ids = longer;
            }
            add(at, ids);
            at += THINK_MILLIS / 2 + random.nextLong(THINK_MILLIS);
        }
    }

    private void scan(int blocks) {
        int prompts = blocks / SCAN_PROMPT_BLOCKS;
        for (int i = 0; i < prompts; i++) {
            add(SCAN_MILLIS + i * SCAN_LASTS_MILLIS / prompts, fresh(SCAN_PROMPT_BLOCKS));
        }
    }

    private long[] fresh(int blocks) {
        long[] ids = new long[blocks];
        for (int i = 0; i < blocks; i++) {
            ids[i] = nextId++;
        }
        return ids;
    }

    /// A token more than whole blocks, so that all of them can be found.
    private void add(long atMillis, long[] ids) {
        long[] all = Arrays.copyOf(ids, ids.length + 1);
        all[ids.length] = nextId++;
        requests.add(new TraceRequest(atMillis, ids.length * Trace.BLOCK_TOKENS + 1, 0, all));
    }
}
