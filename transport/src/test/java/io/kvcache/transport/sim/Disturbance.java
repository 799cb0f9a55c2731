package io.kvcache.transport.sim;

import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/// What happens to a network while it is used: ways are cut for a while, in one direction or both, and
/// servers come back as other processes.
final class Disturbance {

    private final SimNetwork network;
    private final Weather weather;
    private final SplittableRandom random;
    private final List<String> clients;
    private final List<String> servers;
    private final Consumer<String> serve;

    /// @param serve has a server begin, again
    Disturbance(
            SimNetwork network,
            Weather weather,
            SplittableRandom random,
            List<String> clients,
            List<String> servers,
            Consumer<String> serve) {
        this.network = network;
        this.weather = weather;
        this.random = random;
        this.clients = clients;
        this.servers = servers;
        this.serve = serve;
    }

    /// A while, at the end of which all ways are mended and all servers serve.
    void once() {
        rest(1 + random.nextInt(60));
        String client = clients.get(random.nextInt(clients.size()));
        String server = servers.get(random.nextInt(servers.size()));
        int kind = random.nextInt(8);
        if (kind == 0) {
            weather.seen().restarts.increment();
            weather.journal().note(server + " stops");
            network.stop(server);
            rest(random.nextInt(40));
            serve.accept(server);
            weather.journal().note(server + " serves again");
        } else if (kind < 4) {
            SimNetwork.Way there = network.way(client, server);
            SimNetwork.Way back = network.way(server, client);
            there.cut(kind != 2);
            back.cut(kind != 3);
            String ways =
                    (there.cut() ? client + " to " + server + " " : "") + (back.cut() ? server + " to " + client : "");
            weather.journal().note("cut: " + ways);
            (kind == 1 ? weather.seen().cuts : weather.seen().oneWay).increment();
            rest(20 + random.nextInt(random.nextInt(4) == 0 ? 600 : 150));
            there.cut(false);
            back.cut(false);
            weather.journal().note("mended: " + ways);
        }
    }

    /// Goes on for as long as some work does.
    ///
    /// @throws AssertionError when that does not end within `patienceNanos`
    /// @throws ExecutionException when some of it failed
    void until(List<Future<?>> done, long patienceNanos) throws ExecutionException, InterruptedException {
        long start = System.nanoTime();
        while (!done.stream().allMatch(Future::isDone)) {
            if (System.nanoTime() - start > patienceNanos) {
                throw new AssertionError("not done after " + patienceNanos / 1_000_000_000 + " s: a call hangs");
            }
            once();
        }
        for (Future<?> each : done) {
            each.get();
        }
    }

    private static void rest(int millis) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
    }
}
