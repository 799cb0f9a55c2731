package io.kvcache.tiers.movement;

import io.kvcache.tiers.movement.TierWorkerQueue.Load;
import java.util.BitSet;
import java.util.List;

/// Loads of one table that are read step by step: the first bytes of all of them, then the next ones.
///
/// **Threads.** Made by any; the tier worker's from then on.
final class SteppedLoads {

    private final List<SteppedLoad> loads;
    private final int stepBytes;
    private int step;
    private int position;

    /// A load, and how far it has come.
    static final class SteppedLoad {

        final Load load;

        /// Steps that are there and proved.
        final BitSet arrived = new BitSet();

        /// Parts that the tier was given and has not answered.
        int inFlight;

        /// True if no more of it is to be read, but for the parts in flight.
        boolean failed;

        /// True if the copy on disk is to be forgotten.
        boolean lost;

        /// True if nothing is to be done for it in later steps: it has ended, or is read whole.
        boolean ended;

        SteppedLoad(Load load) {
            this.load = load;
        }
    }

    /// @param stepBytes of each block in a step, in whole chunks of a coded block
    SteppedLoads(List<Load> loads, int stepBytes) {
        this.loads = loads.stream().map(SteppedLoad::new).toList();
        this.stepBytes = stepBytes;
    }

    List<SteppedLoad> loads() {
        return loads;
    }

    int stepBytes() {
        return stepBytes;
    }

    long sinceNanos() {
        return loads.getFirst().load.sinceNanos;
    }

    int step() {
        return step;
    }

    /// The load whose part is next.
    SteppedLoad current() {
        return loads.get(position);
    }

    /// Goes on to the next part, and returns whether there may be one.
    boolean advance() {
        position++;
        if (position == loads.size()) {
            position = 0;
            step++;
        }
        return position > 0 || loads.stream().anyMatch(load -> !load.ended && (step + 0L) * stepBytes < bytes(load));
    }

    private static int bytes(SteppedLoad load) {
        return load.load.read().bytes();
    }
}
