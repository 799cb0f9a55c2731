package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.function.ToDoubleFunction;

/// Two servers that get the same loads in turn, round by round.
///
/// @param theirs what ours is held against
record Duel(Contender ours, Contender theirs, Rounds rounds) {

    private static final List<Integer> WARMING_SIZES = List.of(64 << 10, 1 << 20);

    /// Lets both come to speed: a JVM takes some seconds to compile what it does most.
    void warm() throws IOException, InterruptedException {
        rounds.say("warming both");
        Duration time = rounds.time().multipliedBy(2);
        for (Contender each : List.of(ours, theirs)) {
            for (int bytes : WARMING_SIZES) {
                Load load = new Load(true, bytes, 2);
                load.fill(each.port());
                load.against(each.port()).run(time);
                new Load(false, bytes, 2).against(each.port()).run(time);
            }
        }
    }

    /// Stores every key of a load once.
    void fill(Load load) throws IOException {
        load.fill(ours.port());
        load.fill(theirs.port());
    }

    /// Adds bandwidth and p99 to the answers, and answers the bandwidth.
    Answer speed(Load load, Budget budget, List<Answer> answers) throws IOException, InterruptedException {
        rounds.say(load.words());
        Paired speed = new Paired();
        Paired latency = new Paired();
        for (int round = 0; round < rounds.count(); round++) {
            LoadResult own = load.against(ours.port()).run(rounds.time());
            LoadResult other = load.against(theirs.port()).run(rounds.time());
            speed.add(own.gigabytes(load.bytes()), other.gigabytes(load.bytes()));
            latency.add(own.p99Micros(), other.p99Micros());
        }
        Asked fast = new Asked(load.name(), "How fast is " + load.words() + "?", "GB/s");
        Asked slowest = new Asked(load.name() + "-p99", "And how long do 99 of 100 take at most?", "us");
        Answer answer = speed.answer(fast, theirs.name(), budget);
        answers.add(answer);
        answers.add(latency.answer(slowest, theirs.name(), new Budget.None()));
        return answer;
    }

    /// Puts a load on each, once unmeasured so that both come to speed.
    Paired compare(String words, LoadRun own, LoadRun other, ToDoubleFunction<LoadResult> reading)
            throws IOException, InterruptedException {
        rounds.say(words);
        own.run(rounds.time().multipliedBy(2));
        other.run(rounds.time().multipliedBy(2));
        Paired paired = new Paired();
        for (int round = 0; round < rounds.count(); round++) {
            double value = reading.applyAsDouble(own.run(rounds.time()));
            paired.add(value, reading.applyAsDouble(other.run(rounds.time())));
        }
        return paired;
    }
}
