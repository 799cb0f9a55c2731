package io.kvcache.planner.trace;

import io.kvcache.planner.trace.ZipfTrace.ZipfSampler;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;

/// Generates a trace from a workload and a seed: the same two give the same trace on every machine.
///
/// Sessions start at random times with a system prompt chosen by popularity. Each request's prompt is the
/// session's previous prompt, the answer to it, and something new, so its full blocks are those of the
/// previous one and then some. The ids follow Mooncake's convention: prefix-chained, numbered in the
/// order of appearance, the last block partial.
public final class TraceGenerator {

    /// Spread of lengths and gaps: the log-normal's sigma. With 1, one in ten is 3.6 times the median.
    private static final double SIGMA = 1.0;

    /// Milliseconds that an answer's token takes.
    private static final int MILLIS_PER_TOKEN = 20;

    private final Workload workload;
    private final Random random;
    private final int[] systemLengths;
    private final ZipfSampler zipfSampler;
    private final BlockNumbering numbering = new BlockNumbering();
    private final PriorityQueue<Turn> pendingTurns =
            new PriorityQueue<>(Comparator.comparingLong(Turn::atMillis).thenComparingInt(turn -> turn.session.number));
    private int sessions;
    private double nextStartMillis;

    /// @param seed the caller prints it with its results on the trace
    public TraceGenerator(Workload workload, long seed) {
        this.workload = workload;
        random = new Random(seed);
        systemLengths = new int[workload.systemPrompts()];
        zipfSampler = new ZipfSampler(workload.systemPrompts(), workload.zipfExponent());
        for (int i = 0; i < systemLengths.length; i++) {
            systemLengths[i] = Math.min(logNormal(workload.systemTokens()), workload.maxInputTokens() / 2);
        }
    }

    /// Generates this many requests, in the order of their arrival.
    public Trace generate(String name, int requests) {
        List<TraceRequest> made = new ArrayList<>(requests);
        while (made.size() < requests) {
            while (pendingTurns.isEmpty() || pendingTurns.element().atMillis >= nextStartMillis) {
                startSession();
            }
            made.add(serve(pendingTurns.remove()));
        }
        return new Trace(name, made);
    }

    private record Session(int number, Workload.SessionKind kind, int system, int systemTokens) {}

    /// The next request of a session: when, and how long its prompt is.
    private record Turn(Session session, long atMillis, int inputTokens) {}

    private void startSession() {
        boolean agent = random.nextDouble() < workload.agentShare();
        int system = zipfSampler.draw(random);
        Session session =
                new Session(sessions++, agent ? workload.agent() : workload.chat(), system, systemLengths[system]);
        int input = session.systemTokens + logNormal(session.kind.addedTokens());
        pendingTurns.add(new Turn(session, (long) nextStartMillis, Math.min(input, workload.maxInputTokens())));
        nextStartMillis -= workload.sessionGapMillis() * Math.log(1 - random.nextDouble());
    }

    private TraceRequest serve(Turn turn) {
        Session session = turn.session;
        int answer = logNormal(session.kind.answerTokens());
        long nextInput = (long) turn.inputTokens + answer + logNormal(session.kind.addedTokens());
        long gap = logNormal((int) session.kind.gapMillis()) + (long) answer * MILLIS_PER_TOKEN;
        boolean goesOn = random.nextDouble() >= 1 / session.kind.meanTurns();
        if (goesOn && nextInput <= workload.maxInputTokens()) {
            pendingTurns.add(new Turn(session, turn.atMillis + gap, (int) nextInput));
        }
        return new TraceRequest(
                turn.atMillis,
                turn.inputTokens,
                answer,
                numbering.ids(session.system, session.systemTokens, session.number, turn.inputTokens),
                session.number);
    }

    /// A log-normal length with this median, at least 1.
    private int logNormal(int median) {
        return Math.clamp(Math.round(median * Math.exp(SIGMA * random.nextGaussian())), 1, 1 << 28);
    }

    /// The shape of generated traffic: the kinds of sessions, the gaps between their requests, and the
    /// lengths of prompts and answers.
    ///
    /// @param systemPrompts number of different system prompts
    /// @param systemTokens their mean length in tokens
    /// @param zipfExponent popularity of the system prompts: the k-th is requested in proportion to k to
    ///     minus this power
    /// @param agentShare fraction of sessions that are agent loops, 0 to 1
    /// @param chat what people's sessions look like
    /// @param agent what agent loops look like
    /// @param sessionGapMillis mean time between two session starts
    /// @param maxInputTokens a session ends before its prompt grows beyond this
    public record Workload(
            int systemPrompts,
            int systemTokens,
            double zipfExponent,
            double agentShare,
            SessionKind chat,
            SessionKind agent,
            double sessionGapMillis,
            int maxInputTokens) {

        /// One kind of session.
        ///
        /// @param meanTurns mean number of requests, at least 1
        /// @param gapMillis median time from an answer to the next request: human think time, or a tool's run
        ///     time
        /// @param addedTokens median tokens that a request adds: a question, or a tool's output
        /// @param answerTokens median tokens of an answer
        public record SessionKind(double meanTurns, double gapMillis, int addedTokens, int answerTokens) {

            /// Checks ranges.
            public SessionKind {
                require(meanTurns >= 1, "meanTurns", meanTurns, "at least 1");
                require(gapMillis > 0, "gapMillis", gapMillis, "positive");
                require(addedTokens >= 1, "addedTokens", addedTokens, "at least 1");
                require(answerTokens >= 1, "answerTokens", answerTokens, "at least 1");
            }
        }

        /// Checks ranges.
        public Workload {
            require(systemPrompts >= 1, "systemPrompts", systemPrompts, "at least 1");
            require(systemTokens >= 1, "systemTokens", systemTokens, "at least 1");
            require(zipfExponent >= 0, "zipfExponent", zipfExponent, "at least 0");
            require(agentShare >= 0 && agentShare <= 1, "agentShare", agentShare, "from 0 to 1");
            require(sessionGapMillis > 0, "sessionGapMillis", sessionGapMillis, "positive");
            require(maxInputTokens >= 2 * systemTokens, "maxInputTokens", maxInputTokens, "twice systemTokens or more");
        }

        /// Returns a mix of chats, with two minutes between a user's turns, and agent loops, one session in
        /// five, whose tools take two seconds. Studies of production traces report these gaps.
        public static Workload mixed() {
            return new Workload(
                    50,
                    2000,
                    1.0,
                    0.2,
                    new SessionKind(4, 115_000, 300, 350),
                    new SessionKind(15, 1500, 900, 150),
                    2000,
                    128_000);
        }

        /// Returns chats alone, with prompts as long as in published traces of chats.
        public static Workload chats() {
            SessionKind chat = new SessionKind(5, 115_000, 900, 350);
            return new Workload(50, 3000, 1.0, 0, chat, chat, 6000, 128_000);
        }

        private static void require(boolean holds, String name, double value, String allowed) {
            if (!holds) {
                throw new IllegalArgumentException(name + " is " + value + ", must be " + allowed);
            }
        }
    }

    /// Numbers the blocks of generated prompts in the order of their appearance.
    ///
    /// What a block holds is never generated. It is known from where it lies: inside a prefix that sessions
    /// share it is the same for all of them, beyond it the session's own; a partial block differs from the
    /// full one that it becomes.
    static final class BlockNumbering {

        private final Map<Block, Long> numbers = new HashMap<>();

        /// Identifies the content of a block: its owner, its index and the number of its tokens.
        private record Block(boolean shared, int owner, int index, int tokens) {}

        /// Returns the ids of a prompt's blocks.
        ///
        /// @param prefix number of the shared prefix that the prompt begins with
        /// @param prefixTokens its length
        /// @param session number of the session, whose own the rest of the prompt is
        /// @param inputTokens length of the prompt
        long[] ids(int prefix, int prefixTokens, int session, int inputTokens) {
            long[] ids = new long[Math.ceilDiv(inputTokens, Trace.BLOCK_TOKENS)];
            for (int i = 0; i < ids.length; i++) {
                int end = Math.min(inputTokens, (i + 1) * Trace.BLOCK_TOKENS);
                boolean shared = end <= prefixTokens;
                Block block = new Block(shared, shared ? prefix : session, i, end - i * Trace.BLOCK_TOKENS);
                ids[i] = numbers.computeIfAbsent(block, any -> (long) numbers.size());
            }
            return ids;
        }
    }
}
