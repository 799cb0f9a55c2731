package io.kvcache.planner.trace;

import io.kvcache.planner.trace.ZipfTrace.ZipfSampler;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
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

    private record Session(int number, Workload.Session kind, int system, int systemTokens) {}

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
}
