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
final class FaultInjector {

    private final SimNetwork network;
    private final NetworkFaults networkFaults;
    private final SplittableRandom random;
    private final List<String> clients;
    private final List<String> servers;
    private final Consumer<String> serve;

    /// @param serve has a server begin, again
    FaultInjector(
            SimNetwork network,
            NetworkFaults networkFaults,
            SplittableRandom random,
            List<String> clients,
            List<String> servers,
            Consumer<String> serve) {
        this.network = network;
        this.networkFaults = networkFaults;
        this.random = random;
        this.clients = clients;
        this.servers = servers;
        this.serve = serve;
    }

    /// A while, at the end of which all ways are mended and all servers serve.
    void injectOne() {
        sleep(1 + random.nextInt(60));
        String client = clients.get(random.nextInt(clients.size()));
        String server = servers.get(random.nextInt(servers.size()));
        int kind = random.nextInt(8);
        if (kind == 0) {
            networkFaults.counts().restarts.increment();
            networkFaults.journal().note(server + " stops");
            network.stop(server);
            sleep(random.nextInt(40));
            serve.accept(server);
            networkFaults.journal().note(server + " serves again");
        } else if (kind < 4) {
            SimNetwork.NetworkPath there = network.way(client, server);
            SimNetwork.NetworkPath back = network.way(server, client);
            there.cut(kind != 2);
            back.cut(kind != 3);
            String ways =
                    (there.cut() ? client + " to " + server + " " : "") + (back.cut() ? server + " to " + client : "");
            networkFaults.journal().note("cut: " + ways);
            (kind == 1 ? networkFaults.counts().cuts : networkFaults.counts().oneWay).increment();
            sleep(20 + random.nextInt(random.nextInt(4) == 0 ? 600 : 150));
            there.cut(false);
            back.cut(false);
            networkFaults.journal().note("mended: " + ways);
        }
    }

    /// Goes on for as long as some work does.
    ///
    /// @throws AssertionError when that does not end within `patienceNanos`
    /// @throws ExecutionException when some of it failed
    void injectUntilDone(List<Future<?>> done, long patienceNanos) throws ExecutionException, InterruptedException {
        long start = System.nanoTime();
        while (!done.stream().allMatch(Future::isDone)) {
            if (System.nanoTime() - start > patienceNanos) {
                throw new AssertionError("not done after " + patienceNanos / 1_000_000_000 + " s: a call hangs");
            }
            injectOne();
        }
        for (Future<?> each : done) {
            each.get();
        }
    }

    private static void sleep(int millis) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
    }
}
