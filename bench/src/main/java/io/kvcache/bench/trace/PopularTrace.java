package io.kvcache.bench.trace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/// Traffic in which some prompts are wanted hundreds of times as often as others, and nobody comes back
/// for a talk.
///
/// - **applications**: three requests in five begin with one of 40 applications' instructions and go on
///   with something that is asked once; the k-th application is asked in proportion to 1 / k;
/// - **documents**: the others ask something about one of 800 documents, as popular as the applications,
///   of which half change places every 2,000 requests.
///
/// So a small cache has to know what is used most among what is used much.
public final class PopularTrace {

    private static final int REQUESTS = 12_000;
    private static final int APPLICATIONS = 40;
    private static final int LONGEST_INSTRUCTIONS = 40;
    private static final int LONGEST_QUESTION = 12;
    private static final int DOCUMENTS = 800;
    private static final int LONGEST_DOCUMENT = 60;
    private static final int FASHION = 2000;
    private static final double OF_APPLICATIONS = 0.6;

    private final Random random;
    private final Popularity ofApplications = new Popularity(APPLICATIONS, 1);
    private final Popularity ofDocuments = new Popularity(DOCUMENTS, 1);
    private long fresh;

    /// @param seed printed by whoever reports on the trace
    public PopularTrace(long seed) {
        random = new Random(seed);
    }

    /// Twelve thousand requests.
    public Trace generate(String name) {
        List<long[]> applications = prompts(APPLICATIONS, LONGEST_INSTRUCTIONS);
        List<long[]> documents = prompts(DOCUMENTS, LONGEST_DOCUMENT);
        List<TraceRequest> made = new ArrayList<>();
        while (made.size() < REQUESTS) {
            if (made.size() % FASHION == 0) {
                for (int i = 0; i < DOCUMENTS / 4; i++) {
                    Collections.swap(documents, random.nextInt(DOCUMENTS), random.nextInt(DOCUMENTS));
                }
            }
            long[] ids = random.nextDouble() < OF_APPLICATIONS
                    ? asked(applications.get(ofApplications.draw(random)), 1 + random.nextInt(LONGEST_QUESTION))
                    : asked(documents.get(ofDocuments.draw(random)), 1);
            made.add(new TraceRequest(made.size(), ids.length * Trace.BLOCK_TOKENS, 1, ids));
        }
        return new Trace(name, made);
    }

    private List<long[]> prompts(int count, int longest) {
        List<long[]> prompts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            prompts.add(asked(new long[0], 1 + random.nextInt(longest)));
        }
        return prompts;
    }

    /// A prompt, and blocks behind it that were never seen.
    private long[] asked(long[] prompt, int blocks) {
        long[] ids = Arrays.copyOf(prompt, prompt.length + blocks);
        for (int i = prompt.length; i < ids.length; i++) {
            ids[i] = fresh++;
        }
        return ids;
    }
}
