package io.kvcache.planner.trace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/// Traffic in which some prompts are requested hundreds of times as often as others, and no session has a second
/// turn.
///
/// - **applications**: three requests in five begin with one of 40 applications' instructions and go on
///   with something that is asked once; the k-th application is asked in proportion to 1 / k;
/// - **documents**: the others ask something about one of 800 documents, as popular as the applications,
///   of which half change places every 2,000 requests.
///
/// So a small cache has to know what is used most among what is used much.
public final class ZipfTrace {

    private static final int REQUESTS = 12_000;
    private static final int APPLICATIONS = 40;
    private static final int MAX_INSTRUCTION_BLOCKS = 40;
    private static final int MAX_QUESTION_BLOCKS = 12;
    private static final int DOCUMENTS = 800;
    private static final int MAX_DOCUMENT_BLOCKS = 60;
    private static final int POPULARITY_SHIFT_REQUESTS = 2000;
    private static final double APPLICATION_SHARE = 0.6;

    private final Random random;
    private final ZipfSampler applicationSampler = new ZipfSampler(APPLICATIONS, 1);
    private final ZipfSampler documentSampler = new ZipfSampler(DOCUMENTS, 1);
    private long fresh;

    /// @param seed the caller prints it with its results on the trace
    public ZipfTrace(long seed) {
        random = new Random(seed);
    }

    /// Twelve thousand requests.
    public Trace generate(String name) {
        List<long[]> applications = prompts(APPLICATIONS, MAX_INSTRUCTION_BLOCKS);
        List<long[]> documents = prompts(DOCUMENTS, MAX_DOCUMENT_BLOCKS);
        List<TraceRequest> made = new ArrayList<>();
        while (made.size() < REQUESTS) {
            if (made.size() % POPULARITY_SHIFT_REQUESTS == 0) {
                for (int i = 0; i < DOCUMENTS / 4; i++) {
                    Collections.swap(documents, random.nextInt(DOCUMENTS), random.nextInt(DOCUMENTS));
                }
            }
            long[] ids = random.nextDouble() < APPLICATION_SHARE
                    ? randomQuestion(
                            applications.get(applicationSampler.draw(random)), 1 + random.nextInt(MAX_QUESTION_BLOCKS))
                    : randomQuestion(documents.get(documentSampler.draw(random)), 1);
            made.add(new TraceRequest(made.size(), ids.length * Trace.BLOCK_TOKENS, 1, ids));
        }
        return new Trace(name, made);
    }

    private List<long[]> prompts(int count, int longest) {
        List<long[]> prompts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            prompts.add(randomQuestion(new long[0], 1 + random.nextInt(longest)));
        }
        return prompts;
    }

    /// A prompt, and blocks behind it that were never seen.
    private long[] randomQuestion(long[] prompt, int blocks) {
        long[] ids = Arrays.copyOf(prompt, prompt.length + blocks);
        for (int i = prompt.length; i < ids.length; i++) {
            ids[i] = fresh++;
        }
        return ids;
    }

    /// Draws one of several things of which the k-th is wanted in proportion to k to minus some power:
    /// Zipf's law.
    static final class ZipfSampler {

        /// Cumulative weights.
        private final double[] sums;

        /// @param things at least 1
        /// @param exponent 0 for all alike
        ZipfSampler(int things, double exponent) {
            sums = new double[things];
            double sum = 0;
            for (int i = 0; i < things; i++) {
                sum += Math.pow(i + 1, -exponent);
                sums[i] = sum;
            }
        }

        /// The number of a thing, from 0, by one double of the random numbers.
        int draw(Random random) {
            double drawn = random.nextDouble() * sums[sums.length - 1];
            int thing = 0;
            while (sums[thing] < drawn) {
                thing++;
            }
            return thing;
        }
    }
}
