package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// What a GET leaves on the server's heap, whatever the size of its value.
///
/// All threads of the server are counted, less what they allocate while nobody asks for anything.
final class AllocationPart implements ServerPart {

    private static final long HOST_BYTES = 2L << 30;
    private static final List<Integer> SIZES = List.of(4 << 10, 64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final Budget BUDGET = new Budget.AtMost(1024);

    @Override
    public String name() {
        return "allocation";
    }

    @Override
    public String title() {
        return "heap that a GET leaves behind";
    }

    @Override
    public List<Answer> run(Rounds rounds) throws IOException, InterruptedException {
        List<Answer> answers = new ArrayList<>();
        try (Contender ours = Contender.ours(rounds.hostBytes(HOST_BYTES));
                AllocationMeter meter = AllocationMeter.attach(ours.processId())) {
            for (int bytes : SIZES) {
                answers.add(measure(new Load(false, bytes, 1), ours, meter, rounds));
            }
        }
        return answers;
    }

    private static Answer measure(Load load, Contender ours, AllocationMeter meter, Rounds rounds)
            throws IOException, InterruptedException {
        rounds.say("allocation of " + load.words());
        load.fill(ours.port());
        LoadRun gets = load.against(ours.port());
        gets.run(rounds.time().multipliedBy(2)); // What is not compiled yet allocates what later is not.
        Paired perGet = new Paired();
        for (int round = 0; round < rounds.count(); round++) {
            double idle = idle(meter, rounds.time());
            long start = System.nanoTime();
            long before = meter.bytes();
            long count = gets.run(rounds.time()).count();
            double seconds = (System.nanoTime() - start) / 1e9;
            perGet.add((meter.bytes() - before - idle * seconds) / count, 0);
        }
        Asked asked = new Asked(
                load.name().replace("get-", "alloc-").replace("-1c", ""),
                "What does " + load.words() + " leave on the heap?",
                "bytes");
        return perGet.answer(asked, "-", BUDGET);
    }

    /// Bytes a second while nobody asks for anything.
    private static double idle(AllocationMeter meter, Duration time) throws InterruptedException {
        long before = meter.bytes();
        Thread.sleep(time);
        return (meter.bytes() - before) / (time.toNanos() / 1e9);
    }
}
