package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.io.IOException;
import java.util.List;
import java.util.function.ToDoubleFunction;

/// GET beside a [Responder], over one connection: what protocol, look-up and pins cost.
final class ResponderPart implements ServerPart {

    private static final int LARGE = 1 << 20;
    private static final int SMALL = 64 << 10;
    private static final long HOST_BYTES = 2L << 30;
    private static final Asked SPEED = new Asked("bare-get-1m", "How fast is GET of 1 MiB?", "GB/s");
    private static final Asked LATENCY =
            new Asked("bare-get-64k-p50", "How long do half of the GETs of 64 KiB take at most?", "us");

    @Override
    public String name() {
        return "responder";
    }

    @Override
    public String title() {
        return "GET beside a server that does nothing but send";
    }

    @Override
    public List<Answer> run(Rounds rounds) throws IOException, InterruptedException {
        try (Contender bare = Contender.responder();
                Contender ours = Contender.ours(HOST_BYTES)) {
            Paired speed = compare(LARGE, new Duel(ours, bare, rounds), result -> result.gigabytes(LARGE));
            Paired latency = compare(SMALL, new Duel(ours, bare, rounds), LoadResult::p50Micros);
            return List.of(
                    speed.answer(SPEED, bare.name(), new Budget.RatioAtLeast(0.85)),
                    latency.answer(LATENCY, bare.name(), new Budget.RatioAtMost(1.2)));
        }
    }

    private static Paired compare(int bytes, Duel duel, ToDoubleFunction<LoadResult> reading)
            throws IOException, InterruptedException {
        Load load = new Load(false, bytes, 1);
        load.fill(duel.ours().port());
        LoadRun own = load.against(duel.ours().port());
        LoadRun bare = new LoadRun(
                port -> new BareClient(port, bytes),
                load.keys(),
                1,
                duel.theirs().port());
        return duel.compare(load.words(), own, bare, reading);
    }
}
