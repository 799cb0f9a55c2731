package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/// The loads of [ValuesPart] by redis-benchmark, whose only thread takes half of a machine with two cores.
final class ToolPart implements ServerPart {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 2, 8);
    private static final long HOST_BYTES = 2L << 30;
    private static final Budget MEAN = new Budget.RatioAtLeast(0.9);

    @Override
    public String name() {
        return "tool";
    }

    @Override
    public String title() {
        return "GET and SET by redis-benchmark beside redis-server";
    }

    @Override
    public List<Answer> run(Rounds rounds) throws IOException, InterruptedException {
        try (Contender redis = Contender.redis(HOST_BYTES);
                Contender ours = Contender.ours(HOST_BYTES)) {
            Duel duel = new Duel(ours, redis, rounds);
            duel.warm();
            List<Answer> answers = new ArrayList<>();
            for (int bytes : SIZES) {
                duel.fill(new Load(true, bytes, 1));
                for (boolean write : List.of(false, true)) {
                    for (int connections : CONNECTIONS) {
                        answers.add(cell(new Load(write, bytes, connections), duel));
                    }
                }
            }
            Paired mean = new Paired();
            mean.add(Paired.geometricMean(answers.stream().map(Answer::ratio).toList()), 1);
            answers.add(
                    mean.answer(new Asked("tool-mean", "What is that on average, of Redis?", "times"), "Redis", MEAN));
            return answers;
        }
    }

    private static Answer cell(Load load, Duel duel) throws IOException, InterruptedException {
        Rounds rounds = duel.rounds();
        rounds.say("redis-benchmark: " + load.words());
        Paired speed = new Paired();
        for (int round = 0; round < rounds.count(); round++) {
            double own = RedisBenchmark.perSecond(load, duel.ours().port());
            double other = RedisBenchmark.perSecond(load, duel.theirs().port());
            speed.add(own * load.bytes() / 1e9, other * load.bytes() / 1e9);
        }
        return speed.answer(
                new Asked("tool-" + load.name(), "How fast is " + load.words() + "?", "GB/s"),
                duel.theirs().name(),
                new Budget.None());
    }
}
