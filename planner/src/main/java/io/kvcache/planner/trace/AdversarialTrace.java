package io.kvcache.planner.trace;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// Traffic that teaches a policy something and then does the opposite, phase after phase.
///
/// All prompts have eight blocks and share nothing. A cache of a few thousand blocks sees:
///
/// - **habit**: every other prompt is never seen again, the others come back after longer than LRU can
///   wait;
/// - **crowd**: each prompt is new and comes once more within 150 requests, which LRU always finds;
/// - **scan**: prompts that never come back;
/// - **loop**: 1,500 prompts in turn;
/// - **reversal**: as habit, but what came back does no longer, and what came once comes again soon.
public final class AdversarialTrace {

    private static final int BLOCKS = 8;
    private static final int PHASE_REQUESTS = 6000;
    private static final int ROUNDS = 2;
    private static final int HOT_PROMPTS = 600;
    private static final int LOOP_PROMPTS = 1500;
    private static final int REUSE_GAP = 150;

    private final Random random;
    private final List<TraceRequest> made = new ArrayList<>();
    private long fresh = 1 << 20;

    /// @param seed the caller prints it with its results on the trace
    public AdversarialTrace(long seed) {
        random = new Random(seed);
    }

    /// Two rounds of the five phases, 60,000 requests.
    public Trace generate(String name) {
        for (int round = 0; round < ROUNDS; round++) {
            long regulars = (long) round * HOT_PROMPTS;
            for (int i = 0; i < PHASE_REQUESTS; i++) {
                use(i % 2 == 0 ? regulars + i / 2 % HOT_PROMPTS : ++fresh);
            }
            crowd();
            for (int i = 0; i < PHASE_REQUESTS; i++) {
                use(++fresh);
            }
            long loop = 10_000L * (round + 1);
            for (int i = 0; i < PHASE_REQUESTS; i++) {
                use(loop + i % LOOP_PROMPTS);
            }
            crowd();
        }
        return new Trace(name, made);
    }

    private void crowd() {
        List<Long> waiting = new ArrayList<>();
        for (int i = 0; i < PHASE_REQUESTS; i++) {
            if (waiting.size() > REUSE_GAP / 2) {
                use(waiting.remove(random.nextInt(REUSE_GAP / 4)));
            } else {
                waiting.add(++fresh);
                use(fresh);
            }
        }
    }

    private void use(long prompt) {
        long[] ids = new long[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            ids[i] = prompt * BLOCKS + i;
        }
        made.add(new TraceRequest(made.size(), BLOCKS * Trace.BLOCK_TOKENS, 1, ids));
    }
}
