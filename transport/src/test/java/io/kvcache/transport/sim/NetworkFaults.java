package io.kvcache.transport.sim;

import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;

/// What a network does to its connections, as a seed decides: pieces are small and late, by another measure
/// on each connection, so that what two of them carry is reordered; connections break in the middle of
/// frames; readers are slow; ways are cut, in one direction or both, and nobody is told.
///
/// **Threads.** Any.
final class NetworkFaults {

    /// What has happened, over all networks that share these counters.
    static final class FaultCounts {
        final LongAdder connections = new LongAdder();
        final LongAdder refused = new LongAdder();
        final LongAdder broken = new LongAdder();
        final LongAdder cuts = new LongAdder();
        final LongAdder oneWay = new LongAdder();
        final LongAdder restarts = new LongAdder();
        final LongAdder slow = new LongAdder();

        /// Whether each kind of fault has come.
        boolean all() {
            return Stream.of(refused, broken, cuts, oneWay, restarts, slow).allMatch(each -> each.sum() > 0);
        }
    }

    private final long seed;
    private final FaultCounts faultCounts;
    private final AtomicInteger connections = new AtomicInteger();
    private final RunJournal journal = new RunJournal();
    private volatile boolean fair = true;

    NetworkFaults(long seed, FaultCounts faultCounts) {
        this.seed = seed;
        this.faultCounts = faultCounts;
    }

    FaultCounts counts() {
        return faultCounts;
    }

    /// Where all that happens in this network is noted.
    RunJournal journal() {
        return journal;
    }

    /// From now on there is weather.
    void begin() {
        journal.note("the weather begins");
        fair = false;
    }

    /// From now on all goes well, on connections that there are and that come.
    void end() {
        journal.note("the weather ends");
        fair = true;
    }

    /// The two directions of a new connection.
    SimPipe[] connection(SimNetwork.NetworkPath there, SimNetwork.NetworkPath back) {
        SplittableRandom random = new SplittableRandom(seed * 1_000_003 + connections.incrementAndGet());
        faultCounts.connections.increment();
        return new SimPipe[] {
            new SimPipe(new PipeFaults(random.split(), there)), new SimPipe(new PipeFaults(random.split(), back))
        };
    }

    /// Of one direction of a connection. Asked under the pipe's lock only.
    final class PipeFaults {

        private static final long ROUGH_NANOS = 2_000_000;

        private final SplittableRandom random;
        private final SimNetwork.NetworkPath networkPath;
        private final long mostDelayNanos;
        private final boolean slow;
        private long untilBreak;

        private PipeFaults(SplittableRandom random, SimNetwork.NetworkPath networkPath) {
            this.random = random;
            this.networkPath = networkPath;
            mostDelayNanos = random.nextInt(3) == 0 ? random.nextLong(ROUGH_NANOS) : 20_000;
            slow = random.nextInt(8) == 0;
            untilBreak = random.nextInt(4) == 0 ? random.nextLong(600_000) : Long.MAX_VALUE;
            if (slow) {
                faultCounts.slow.increment();
            }
        }

        int pieceBytes() {
            return slow && !fair ? 1 + random.nextInt(4096) : 1 + random.nextInt(128 << 10);
        }

        long delayNanos() {
            return fair ? 0 : random.nextLong(1 + mostDelayNanos);
        }

        boolean breaksWithin(int bytes) {
            if (fair) {
                return false;
            }
            untilBreak -= bytes;
            boolean now = untilBreak < 0;
            if (now) {
                faultCounts.broken.increment();
            }
            return now;
        }

        boolean cut() {
            return networkPath.cut();
        }
    }
}
