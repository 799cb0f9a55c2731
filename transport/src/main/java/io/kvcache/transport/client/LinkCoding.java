package io.kvcache.transport.client;

import io.kvcache.core.codec.BlockCodec;
import io.kvcache.core.codec.StoredLayout;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Decides whether a server is asked for coded blocks, and decodes them.
///
/// Coding takes the server's processor and this one's, so it pays only where the link is slower than they are. What
/// comes is timed, and both ways are tried in turn as long as plain blocks come slower than a coder works.
///
/// **Threads.** Any.
final class LinkCoding {

    /// Bytes a nanosecond of plain blocks above which no link is slower than a coder, with the other end's.
    private static final double FAST = 2.0;

    /// Smaller transfers tell more of the way to and fro than of the link.
    private static final long MIN_TIMED_BYTES = 1 << 20;

    /// A smaller block has no whole chunk.
    private static final long MIN_BLOCK_BYTES = 64 << 10;

    /// Transfers from one in the other way to the next.
    private static final int TRIAL_INTERVAL = 16;

    /// Timed transfers before the first trial.
    private static final int FIRST_TRIAL = 4;

    /// How much faster coded blocks have to come.
    private static final double MIN_GAIN = 1.1;

    private static final double WEIGHT = 0.25;
    private static final int MAX_IDLE_CODECS = 8;

    private final Deque<BlockCodec> codecs = new ArrayDeque<>();
    private final @Nullable Boolean fixed;
    private double plainPace;
    private double codedPace;
    private int timed;

    /// Decides by what it measures.
    LinkCoding() {
        this(null);
    }

    /// @param fixed whether to ask for coded blocks always or never; null to measure
    LinkCoding(@Nullable Boolean fixed) {
        this.fixed = fixed;
    }

    /// Returns whether to ask for coded blocks next.
    synchronized boolean isWanted(long blockBytes) {
        if (blockBytes < MIN_BLOCK_BYTES) {
            return false;
        }
        if (fixed != null) {
            return fixed;
        }
        if (timed < FIRST_TRIAL || plainPace >= FAST) {
            return false;
        }
        boolean better = codedPace >= MIN_GAIN * plainPace;
        boolean trial = codedPace == 0 || timed % TRIAL_INTERVAL == 0;
        return better != trial;
    }

    /// Blocks have come.
    ///
    /// @param coded whether they were asked for as coded ones
    /// @param plainBytes of them
    synchronized void onTransfer(boolean coded, long plainBytes, long nanos) {
        if (plainBytes < MIN_TIMED_BYTES || nanos <= 0) {
            return;
        }
        timed++;
        double pace = (double) plainBytes / nanos;
        if (coded) {
            codedPace = mean(codedPace, pace);
        } else {
            plainPace = mean(plainPace, pace);
        }
    }

    private static double mean(double before, double pace) {
        return before == 0 ? pace : before + WEIGHT * (pace - before);
    }

    /// Decodes a block in place.
    ///
    /// @param pages whole pages of native memory, as many as the plain bytes take; the coded bytes are the last
    /// @param checksum that the plain bytes must have
    /// @return whether they have it
    boolean decode(StoredLayout layout, MemorySegment pages, int plainBytes, int checksum) {
        BlockCodec codec = take();
        try {
            return codec.decode(layout, List.of(pages), plainBytes, checksum);
        } finally {
            giveBack(codec);
        }
    }

    private BlockCodec take() {
        synchronized (codecs) {
            BlockCodec kept = codecs.poll();
            return kept == null ? new BlockCodec() : kept;
        }
    }

    private void giveBack(BlockCodec codec) {
        synchronized (codecs) {
            if (codecs.size() < MAX_IDLE_CODECS) {
                codecs.push(codec);
            }
        }
    }
}
