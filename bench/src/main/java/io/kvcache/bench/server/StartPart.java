package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.io.IOException;
import java.util.List;

/// How long it takes from the start of the process to the first GET that is served, with 4 GiB of host memory (less in
/// quick rounds).
final class StartPart implements ServerPart {

    private static final long HOST_BYTES = 4L << 30;
    private static final int VALUE_BYTES = 64 << 10;

    @Override
    public String name() {
        return "start";
    }

    @Override
    public String title() {
        return "from the start to the first GET";
    }

    @Override
    public List<Answer> run(Rounds rounds) throws IOException, InterruptedException {
        long hostBytes = rounds.hostBytes(HOST_BYTES);
        String size = hostBytes < 1L << 30 ? (hostBytes >> 20) + " MiB" : (hostBytes >> 30) + " GiB";
        rounds.say("starting with " + size);
        Paired seconds = new Paired();
        for (int round = 0; round < rounds.count(); round++) {
            seconds.add(firstGet(hostBytes), 0);
        }
        Asked asked = new Asked("start-get", "How long from the start to the first GET, with " + size + "?", "s");
        return List.of(seconds.answer(asked, "-", new Budget.AtMost(2)));
    }

    private static double firstGet(long hostBytes) throws IOException, InterruptedException {
        long start = System.nanoTime();
        try (Contender ours = Contender.ours(hostBytes);
                ValueClient client = new ValueClient(ours.port(), VALUE_BYTES, false)) {
            client.set(0, VALUE_BYTES);
            client.ask(0);
            return (System.nanoTime() - start) / 1e9;
        }
    }
}
