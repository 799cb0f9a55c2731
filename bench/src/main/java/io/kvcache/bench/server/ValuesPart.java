package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/// GET and SET of four sizes over one, two and eight connections, beside redis-server.
final class ValuesPart implements ServerPart {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 2, 8);
    private static final Budget CELL = new Budget.RatioAtLeast(0.9);
    private static final Budget MEAN_OF_GET = new Budget.RatioAtLeast(1.3);
    private static final Budget MEAN_OF_SET = new Budget.RatioAtLeast(1.0);
    private static final long HOST_BYTES = 2L << 30;

    @Override
    public String name() {
        return "values";
    }

    @Override
    public String title() {
        return "GET and SET of 64 KiB to 32 MiB beside redis-server";
    }

    @Override
    public List<Answer> run(Rounds rounds) throws IOException, InterruptedException {
        try (Contender redis = Contender.redis(HOST_BYTES);
                Contender ours = Contender.ours(HOST_BYTES)) {
            Duel duel = new Duel(ours, redis, rounds);
            duel.warm();
            return compare(duel);
        }
    }

    private static List<Answer> compare(Duel duel) throws IOException, InterruptedException {
        List<Answer> answers = new ArrayList<>();
        List<Double> gets = new ArrayList<>();
        List<Double> sets = new ArrayList<>();
        for (int bytes : SIZES) {
            duel.fill(new Load(true, bytes, 1));
            for (boolean write : List.of(false, true)) {
                for (int connections : CONNECTIONS) {
                    Load load = new Load(write, bytes, connections);
                    Answer speed = duel.speed(load, CELL, answers);
                    (write ? sets : gets).add(speed.ratio());
                }
            }
        }
        answers.add(mean("get-mean", "GET", gets, MEAN_OF_GET));
        answers.add(mean("set-mean", "SET", sets, MEAN_OF_SET));
        return answers;
    }

    private static Answer mean(String name, String operation, List<Double> ratios, Budget budget) {
        Paired mean = new Paired();
        mean.add(Paired.geometricMean(ratios), 1);
        Asked asked = new Asked(name, "What is that on average for " + operation + ", of Redis?", "times");
        return mean.answer(asked, "Redis", budget);
    }
}
