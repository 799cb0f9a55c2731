package io.kvcache.planner.trace;

import io.kvcache.planner.trace.TraceGenerator.BlockNumbering;
import io.kvcache.planner.trace.ZipfTrace.ZipfSampler;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/// Generates the traffic of agents with tools: a fixed number of sessions at work at once, each of which asks
/// again with its whole conversation so far when a tool has run. The same workload and seed give the same trace on
/// every machine.
///
/// A session begins with the system prompt and the tool definitions of its application, one of a few by
/// popularity, and with a task. Each of its 20 to 150 requests is the previous prompt, the answer to it and the
/// output of a tool; after every twelfth on average a human answers in its place, later and in fewer tokens. When
/// a session ends, another takes its place: a new one, or, one time in twenty, one that had ended and goes on.
public final class AgentTraceGenerator {

    private static final int APPLICATIONS = 6;
    private static final int MIN_REQUESTS = 20;
    private static final int MAX_REQUESTS = 150;
    private static final double HUMAN_SHARE = 1.0 / 12;
    private static final double RETURN_SHARE = 0.05;

    private static final int TASK_TOKENS = 1500;
    private static final int TOOL_OUTPUT_TOKENS = 900;
    private static final int MAX_TOOL_OUTPUT_TOKENS = 16_000;
    private static final int QUESTION_TOKENS = 120;
    private static final int ANSWER_TOKENS = 180;
    private static final int MILLIS_PER_TOKEN = 20;

    /// The log-normal's sigma of lengths, and of definitions, which differ less.
    private static final double LENGTH_SIGMA = 1.0;

    private static final double DEFINITION_SIGMA = 0.4;

    /// The log-normal's sigmas of gaps: how much sessions differ, as one edits and the other one runs tests, and
    /// how much the gaps of one session do. Of both together one gap in ten is 5.5 times the median, as of tools
    /// with 17 and 93 seconds.
    private static final double PACE_SIGMA = 0.6;

    private static final double GAP_SIGMA = 1.19;

    private final AgentWorkload workload;
    private final Random random;
    private final int[] definitionTokens = new int[APPLICATIONS];
    private final ZipfSampler applicationSampler = new ZipfSampler(APPLICATIONS, 1);
    private final BlockNumbering numbering = new BlockNumbering();
    private final List<Session> ended = new ArrayList<>();
    private final PriorityQueue<Session> active =
            new PriorityQueue<>(Comparator.<Session>comparingLong(session -> session.nextMillis)
                    .thenComparingInt(session -> session.number));
    private int sessions;

    /// @param seed the caller prints it with its results on the trace
    public AgentTraceGenerator(AgentWorkload workload, long seed) {
        this.workload = workload;
        random = new Random(seed);
        for (int i = 0; i < APPLICATIONS; i++) {
            definitionTokens[i] =
                    Math.min(logNormal(workload.definitionTokens(), DEFINITION_SIGMA), 2 * workload.definitionTokens());
        }
    }

    /// Generates the workload's requests, in the order of their arrival.
    public Trace generate(String name) {
        for (int i = 0; i < workload.sessions(); i++) {
            active.add(newSession((long) i * workload.toolSeconds() * 1000));
        }
        List<TraceRequest> made = new ArrayList<>(workload.requests());
        while (made.size() < workload.requests()) {
            made.add(serve(active.remove()));
        }
        return new Trace(name, made);
    }

    private static final class Session {

        final int number;
        final int application;
        long nextMillis;
        int inputTokens;
        int requestsLeft;
        double pace;

        Session(int number, int application) {
            this.number = number;
            this.application = application;
        }
    }

    private Session newSession(long atMillis) {
        Session session = new Session(sessions++, applicationSampler.draw(random));
        int tokens = definitionTokens[session.application] + logNormal(TASK_TOKENS, LENGTH_SIGMA);
        session.inputTokens = Math.min(tokens, workload.contextTokens());
        start(session, atMillis);
        return session;
    }

    private void start(Session session, long atMillis) {
        session.nextMillis = atMillis;
        session.pace = Math.exp(PACE_SIGMA * random.nextGaussian());
        session.requestsLeft =
                (int) (MIN_REQUESTS * Math.pow((double) MAX_REQUESTS / MIN_REQUESTS, random.nextDouble()));
    }

    private TraceRequest serve(Session session) {
        int answer = logNormal(ANSWER_TOKENS, LENGTH_SIGMA);
        TraceRequest request = new TraceRequest(
                session.nextMillis,
                session.inputTokens,
                answer,
                numbering.ids(
                        session.application,
                        definitionTokens[session.application],
                        session.number,
                        session.inputTokens),
                session.number);
        boolean human = random.nextDouble() < HUMAN_SHARE;
        int added = human
                ? logNormal(QUESTION_TOKENS, LENGTH_SIGMA)
                : Math.min(logNormal(TOOL_OUTPUT_TOKENS, LENGTH_SIGMA), MAX_TOOL_OUTPUT_TOKENS);
        int gapMillis = logNormal(
                (int) (1000 * session.pace * (human ? workload.humanSeconds() : workload.toolSeconds())), GAP_SIGMA);
        long next = session.nextMillis + (long) answer * MILLIS_PER_TOKEN + gapMillis;
        session.inputTokens += answer + added;
        session.requestsLeft--;
        if (session.inputTokens > workload.contextTokens()) {
            active.add(newSession(next));
        } else if (session.requestsLeft > 0) {
            session.nextMillis = next;
            active.add(session);
        } else {
            ended.add(session);
            active.add(successor(next));
        }
        return request;
    }

    private Session successor(long atMillis) {
        if (random.nextDouble() >= RETURN_SHARE) {
            return newSession(atMillis);
        }
        Session returned = ended.remove(random.nextInt(ended.size()));
        start(returned, atMillis);
        return returned;
    }

    /// A log-normal length or time with this median, at least 1.
    private int logNormal(int median, double sigma) {
        return Math.clamp(Math.round(median * Math.exp(sigma * random.nextGaussian())), 1, 1 << 28);
    }

    /// The shape of the traffic of agents with tools, see [AgentTraceGenerator].
    ///
    /// @param requests requests in the trace, 1 to 1,000,000
    /// @param sessions sessions at work at once, 1 to 10,000
    /// @param toolSeconds median time that a tool runs, 1 to 3,600
    /// @param humanSeconds median time until a human answers, 1 to 86,400
    /// @param contextTokens a session ends before its prompt grows beyond this, 20,000 to 2,000,000
    /// @param definitionTokens median length of an application's system prompt and tool definitions, 1 to
    ///     10,000
    public record AgentWorkload(
            int requests, int sessions, int toolSeconds, int humanSeconds, int contextTokens, int definitionTokens) {

        /// Sessions of coding agents as traces of them show: tools that run for 17 seconds, humans who answer
        /// after 145, contexts of up to 200,000 tokens.
        public static final AgentWorkload USUAL = new AgentWorkload(12_000, 44, 17, 145, 200_000, 8000);

        /// The settings' names, for messages.
        public static final String NAMES = "requests, sessions, tool, human, context, definitions";

        private static final String RANGES = "requests (1 to 1000000), sessions (1 to 10000), tool (1 to 3600 s),"
                + " human (1 to 86400 s), context (20000 to 2000000 tokens), definitions (1 to 10000 tokens)";

        private static final Set<String> KNOWN = Set.of(NAMES.split(", "));

        /// Checks ranges.
        public AgentWorkload {
            require("requests", requests, 1, 1_000_000);
            require("sessions", sessions, 1, 10_000);
            require("tool", toolSeconds, 1, 3600);
            require("human", humanSeconds, 1, 86_400);
            require("context", contextTokens, 20_000, 2_000_000);
            require("definitions", definitionTokens, 1, 10_000);
        }

        /// Reads settings such as `sessions=48` and `tool=30`; what is not named is as usual.
        ///
        /// @throws IllegalArgumentException that names the setting that is unknown, repeated or out of range,
        ///     and what settings there are
        static AgentWorkload parse(List<String> settings) {
            Map<String, Integer> values = new TreeMap<>();
            for (String setting : settings) {
                int equals = setting.indexOf('=');
                String name = equals < 0 ? setting : setting.substring(0, equals);
                if (equals < 0 || !KNOWN.contains(name)) {
                    throw invalid("'" + setting + "' is not a setting (NAME=N) of a trace of agents");
                }
                Integer before;
                try {
                    before = values.put(name, Integer.valueOf(setting.substring(equals + 1)));
                } catch (NumberFormatException _) {
                    throw invalid("'" + setting + "' of a trace of agents needs a whole number");
                }
                if (before != null) {
                    throw invalid(
                            name + " of a trace of agents is given twice, as " + before + " and '" + setting + "'");
                }
            }
            return new AgentWorkload(
                    values.getOrDefault("requests", USUAL.requests),
                    values.getOrDefault("sessions", USUAL.sessions),
                    values.getOrDefault("tool", USUAL.toolSeconds),
                    values.getOrDefault("human", USUAL.humanSeconds),
                    values.getOrDefault("context", USUAL.contextTokens),
                    values.getOrDefault("definitions", USUAL.definitionTokens));
        }

        private static void require(String name, int value, int lowest, int highest) {
            if (value < lowest || value > highest) {
                throw invalid(
                        name + " of a trace of agents is " + value + ", must be from " + lowest + " to " + highest);
            }
        }

        private static IllegalArgumentException invalid(String mistake) {
            return new IllegalArgumentException(mistake + "; settings: " + RANGES);
        }
    }
}
