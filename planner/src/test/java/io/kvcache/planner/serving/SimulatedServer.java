package io.kvcache.planner.serving;

import io.kvcache.core.cost.PrefillCost;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/// A server that answers at once, says which times it would have taken, and caches blocks without end.
final class SimulatedServer implements CompletionServer {

    static final double REQUEST = 0.01;
    static final double CACHED_TOKEN = 2e-6;
    static final double OUTPUT_TOKEN = 0.005;
    static final PrefillCost PREFILL = new PrefillCost(1e-3, 5e-7);

    private final int blockTokens;
    private final int longestPrompt;
    private final Set<Integer> blocks = new HashSet<>();

    /// @param blockTokens of its cache; 0 for none
    /// @param longestPrompt that it takes
    SimulatedServer(int blockTokens, int longestPrompt) {
        this.blockTokens = blockTokens;
        this.longestPrompt = longestPrompt;
    }

    @Override
    public String address() {
        return "http://simulated:1";
    }

    @Override
    public String model() {
        return "simulated";
    }

    @Override
    public synchronized Completion complete(int[] prompt, int maxTokens) throws IOException {
        if (prompt.length > longestPrompt) {
            throw new IOException("the prompt has " + prompt.length + " tokens");
        }
        int cached = blockTokens == 0 ? 0 : cached(prompt);
        double first = REQUEST + cached * CACHED_TOKEN + PREFILL.seconds(cached, prompt.length);
        return new Completion(first, first + (maxTokens - 1) * OUTPUT_TOKEN, prompt.length, cached, maxTokens);
    }

    private int cached(int[] prompt) {
        int cached = 0;
        boolean found = true;
        for (int end = blockTokens; end <= prompt.length; end += blockTokens) {
            found &= !blocks.add(Arrays.hashCode(Arrays.copyOf(prompt, end)));
            cached = found && end < prompt.length ? end : cached;
        }
        return cached;
    }
}
