package io.kvcache.bench.crash;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// One step of a process that is killed sooner or later. Which steps it takes follows from a seed, so whoever knows
/// the seed knows what may be found afterwards.
///
/// @param number from 0
/// @param target chain or object
/// @param size blocks of the chain, bytes of the object, or the block from which on a chain is dropped
record CrashStep(int number, Kind kind, int target, int size) {

    private static final int STEPS = 150;
    private static final int OBJECTS = 12;
    private static final int MAX_BLOCKS = 12;
    private static final int MAX_OBJECT_BYTES = 200_000;

    enum Kind {
        PUT_CHAIN,
        DROP_CHAIN,
        PUT_OBJECT,
        DROP_OBJECT,
        FLUSH
    }

    /// The steps of a seed: chains are put once and dropped once at most, objects over and over.
    static List<CrashStep> generate(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        List<CrashStep> steps = new ArrayList<>();
        List<CrashStep> chains = new ArrayList<>();
        int nextChain = 0;
        for (int number = 0; number < STEPS; number++) {
            int dice = random.nextInt(100);
            CrashStep step;
            if (dice < 45) {
                step = new CrashStep(number, Kind.PUT_CHAIN, nextChain++, 1 + random.nextInt(MAX_BLOCKS));
                chains.add(step);
            } else if (dice < 53 && !chains.isEmpty()) {
                CrashStep dropped = chains.remove(random.nextInt(chains.size()));
                step = new CrashStep(number, Kind.DROP_CHAIN, dropped.target, random.nextInt(dropped.size));
            } else if (dice < 80) {
                int bytes = 1 + random.nextInt(1 + random.nextInt(MAX_OBJECT_BYTES));
                step = new CrashStep(number, Kind.PUT_OBJECT, random.nextInt(OBJECTS), bytes);
            } else if (dice < 85) {
                step = new CrashStep(number, Kind.DROP_OBJECT, random.nextInt(OBJECTS), 0);
            } else {
                step = new CrashStep(number, Kind.FLUSH, 0, 0);
            }
            steps.add(step);
        }
        return List.copyOf(steps);
    }
}
