package io.kvcache.bench.server;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.JMX;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/// The server beside redis-server on the same cores, and what it takes by itself.
///
/// - `values`: GET, SET and small pipelined requests of a client with a thread for each connection, beside Redis.
/// - `newcomer`: redis-benchmark, beside Redis; see [RedisBenchmark].
/// - `allocation`: bytes of heap that a GET leaves, whatever the size of its value.
/// - `start`: seconds from the start of the process to the first GET, with 4 GiB of host memory.
/// - `soak`, only by name: resident memory during ten minutes in which values of mixed sizes come and go.
public final class ServerSuite {

    private static final List<String> PARTS = List.of("values", "newcomer", "allocation", "start", "soak");
    private static final int ROUNDS = 5;
    private static final long GIBIBYTE = 1L << 30;

    /// More than a [RespLoad] takes of Redis: 40 MiB for a value of 32 MiB, and as much for each waiting client.
    private static final long QUICK_HOST_BYTES = 1536L << 20;

    private static final List<Integer> VALUE_SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 2, 8);
    private static final List<Integer> ALLOCATION_SIZES = List.of(4 << 10, 64 << 10, 1 << 20, 4 << 20, 32 << 20);

    private ServerSuite() {}

    public static Suite suite() {
        return new Suite("server", "the cache server beside redis-server", List.of(), PARTS, ServerSuite::measure);
    }

    private static List<Figure> measure(Suite.Run run) throws IOException, InterruptedException {
        List<Figure> figures = new ArrayList<>();
        if (run.wantsPart("values")) {
            figures.addAll(values(run));
        }
        if (run.wantsPart("newcomer")) {
            figures.addAll(new RedisBenchmark().measure(run));
        }
        if (run.wantsPart("allocation")) {
            figures.addAll(allocation(run));
        }
        if (run.wantsPart("start")) {
            figures.add(start(run));
        }
        if (run.parts().contains("soak")) {
            figures.addAll(soak(run));
        }
        return figures;
    }

    static Duration time(Suite.Run run) {
        return Duration.ofMillis(run.quick() ? 200 : 1000);
    }

    static long hostBytes(Suite.Run run, long full) {
        return run.quick() ? Math.min(full, QUICK_HOST_BYTES) : full;
    }

    private static List<Figure> values(Suite.Run run) throws IOException, InterruptedException {
        List<Figure> figures = new ArrayList<>();
        long hostBytes = hostBytes(run, 2 * GIBIBYTE);
        try (ServerProcess redis = ServerProcess.startRedis(hostBytes);
                ServerProcess ours = ServerProcess.startCurrent(hostBytes)) {
            List<ServerProcess> both = List.of(ours, redis);
            warmUp(run, both);
            for (int bytes : VALUE_SIZES) {
                figures.addAll(compare(run, RespLoad.ofValues(bytes, CONNECTIONS), both));
            }
            figures.add(Figure.meanRatio("get-mean", redis.name(), of(figures, "get-")));
            figures.add(Figure.meanRatio("set-mean", redis.name(), of(figures, "set-")));
            figures.addAll(compare(run, RespLoad.piped(), both));
        }
        return figures;
    }

    private static List<Figure> of(List<Figure> figures, String name) {
        return figures.stream().filter(figure -> figure.name().startsWith(name)).toList();
    }

    /// Lets servers come to speed: a JVM takes some seconds to compile what it does most.
    static void warmUp(Suite.Run run, List<ServerProcess> servers) throws IOException, InterruptedException {
        run.progress().accept("warming both");
        for (ServerProcess server : servers) {
            for (int bytes : VALUE_SIZES.subList(0, 2)) {
                for (RespLoad load : RespLoad.ofValues(bytes, List.of(2))) {
                    load.fill(server.port());
                    load.run(server.port(), time(run).multipliedBy(2));
                }
            }
        }
    }

    /// Puts each load on both servers in turn, round by round.
    private static List<Figure> compare(Suite.Run run, List<RespLoad> loads, List<ServerProcess> both)
            throws IOException, InterruptedException {
        List<Figure> figures = new ArrayList<>();
        for (ServerProcess server : both) {
            loads.getFirst().fill(server.port());
        }
        for (RespLoad load : loads) {
            run.progress().accept(load.name());
            int rounds = run.rounds(ROUNDS);
            double[][] speeds = new double[2][rounds];
            for (int round = -1; round < rounds; round++) {
                for (int i = 0; i < both.size(); i++) {
                    double perSecond = load.run(both.get(i).port(), time(run));
                    if (round >= 0) {
                        speeds[i][round] =
                                load.operation().isPiped() ? perSecond / 1e3 : perSecond * load.bytes() / 1e9;
                    }
                }
            }
            String unit = load.operation().isPiped() ? "thousand/s" : "GB/s";
            figures.add(Figure.of(load.name(), unit, speeds[0], both.getLast().name(), speeds[1]));
        }
        return figures;
    }

    /// Counts the allocations of all threads of the server, minus those of the idle server in the same time.
    private static List<Figure> allocation(Suite.Run run) throws IOException, InterruptedException {
        List<Figure> figures = new ArrayList<>();
        try (ServerProcess ours = ServerProcess.startCurrent(hostBytes(run, 2 * GIBIBYTE));
                AllocationMeter meter = AllocationMeter.attach(ours.processId())) {
            for (int bytes : ALLOCATION_SIZES) {
                RespLoad gets = new RespLoad(RespLoad.Operation.GET, bytes, 1);
                run.progress().accept("allocation of " + gets.name());
                gets.fill(ours.port());
                // What is not compiled yet allocates what later is not.
                gets.run(ours.port(), time(run).multipliedBy(2));
                double[] perGet = new double[run.rounds(ROUNDS)];
                for (int round = 0; round < perGet.length; round++) {
                    long idle = meter.allocatedBytes();
                    Thread.sleep(time(run));
                    long before = meter.allocatedBytes();
                    long start = System.nanoTime();
                    double perSecond = gets.run(ours.port(), time(run));
                    double seconds = (System.nanoTime() - start) / 1e9;
                    double idlePerSecond = (before - idle) / (time(run).toNanos() / 1e9);
                    perGet[round] = (meter.allocatedBytes() - before - idlePerSecond * seconds) / (perSecond * seconds);
                }
                figures.add(Figure.of("alloc-" + gets.size(), "bytes", perGet));
            }
        }
        return figures;
    }

    private static Figure start(Suite.Run run) throws IOException, InterruptedException {
        long hostBytes = hostBytes(run, 4 * GIBIBYTE);
        run.progress().accept("starting with " + (hostBytes >> 20) + " MiB");
        int bytes = 64 << 10;
        double[] seconds = new double[run.rounds(ROUNDS)];
        for (int round = 0; round < seconds.length; round++) {
            long start = System.nanoTime();
            try (ServerProcess ours = ServerProcess.startCurrent(hostBytes);
                    RespConnection client = new RespConnection(ours.port(), bytes)) {
                client.set("key", bytes);
                client.get("key", bytes);
                seconds[round] = (System.nanoTime() - start) / 1e9;
            }
        }
        return Figure.of("start-get", "s", seconds);
    }

    /// The bound is what values may take, a tenth of it for what is known of them, and 500 MiB for the JVM.
    private static List<Figure> soak(Suite.Run run) throws IOException, InterruptedException {
        long hostBytes = hostBytes(run, 2 * GIBIBYTE);
        double boundMebibytes = mebibytes(hostBytes + hostBytes / 10) + 500;
        Duration time = run.quick() ? Duration.ofSeconds(5) : Duration.ofMinutes(10);
        run.progress().accept("soaking for " + time.toSeconds() + " s");
        int clients = 4;
        double most = 0;
        double setBytes = 0;
        try (ServerProcess ours = ServerProcess.startCurrent(hostBytes);
                ExecutorService threads = Executors.newFixedThreadPool(clients)) {
            long end = System.nanoTime() + time.toNanos();
            List<Future<Long>> running = new ArrayList<>();
            for (int i = 0; i < clients; i++) {
                long seed = i;
                running.add(threads.submit(() -> setAndGet(ours.port(), seed, hostBytes, end)));
            }
            while (System.nanoTime() < end) {
                most = Math.max(most, mebibytes(residentBytes(ours.processId())));
                Thread.sleep(Duration.ofSeconds(1));
            }
            for (Future<Long> each : running) {
                setBytes += each.get();
            }
        } catch (ExecutionException failed) {
            throw new IOException("a client failed: " + failed.getCause(), failed.getCause());
        }
        return List.of(
                Figure.of("soak-resident", "MiB", new double[] {most}, "bound", new double[] {boundMebibytes}),
                Figure.of("soak-turned", "times", setBytes / hostBytes));
    }

    /// SETs and GETs of three times as many values as fit, of 1 KiB to 32 MiB, each size as likely as its double.
    ///
    /// @return bytes of the values that were set
    private static long setAndGet(int port, long seed, long hostBytes, long end) throws IOException {
        Random random = new Random(seed);
        int meanBytes = 2200 << 10;
        int keys = (int) (3 * hostBytes / meanBytes);
        long setBytes = 0;
        try (RespConnection client = new RespConnection(port, 1 << 20)) {
            while (System.nanoTime() < end) {
                String key = RespLoad.keyName(random.nextInt(keys));
                if (random.nextBoolean()) {
                    int bytes = (int) Math.pow(2, 10 + 15 * random.nextDouble());
                    client.set(key, bytes);
                    setBytes += bytes;
                } else {
                    client.find(key);
                }
            }
        }
        return setBytes;
    }

    private static double mebibytes(long bytes) {
        return bytes / (double) (1 << 20);
    }

    private static long residentBytes(long processId) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/" + processId + "/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            }
        }
        throw new IOException("/proc/" + processId + "/status has no VmRSS: the server has ended");
    }

    /// Heap bytes that all threads of another JVM on this machine have allocated since its start.
    static final class AllocationMeter implements AutoCloseable {

        private final JMXConnector connector;
        private final ThreadAllocations threadAllocations;

        private AllocationMeter(JMXConnector connector, ThreadAllocations threadAllocations) {
            this.connector = connector;
            this.threadAllocations = threadAllocations;
        }

        /// The part of the other JVM's thread bean that is read.
        public interface ThreadAllocations {

            long getTotalThreadAllocatedBytes();
        }

        /// Attaches to a JVM and starts its management agent.
        ///
        /// @throws IOException when this user has no such JVM, or the JVM refuses the attachment
        @SuppressWarnings("BanJNDI") // the other end is a process that we have started ourselves
        static AllocationMeter attach(long processId) throws IOException {
            JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(agent(Long.toString(processId))));
            try {
                return new AllocationMeter(
                        connector,
                        JMX.newMXBeanProxy(
                                connector.getMBeanServerConnection(),
                                new ObjectName(ManagementFactory.THREAD_MXBEAN_NAME),
                                ThreadAllocations.class));
            } catch (MalformedObjectNameException bug) {
                throw new AssertionError(bug);
            }
        }

        private static String agent(String processId) throws IOException {
            try {
                VirtualMachine machine = VirtualMachine.attach(processId);
                try {
                    return machine.startLocalManagementAgent();
                } finally {
                    machine.detach();
                }
            } catch (AttachNotSupportedException refused) {
                throw new IOException("process " + processId + " cannot be attached to", refused);
            }
        }

        long allocatedBytes() {
            return threadAllocations.getTotalThreadAllocatedBytes();
        }

        @Override
        public void close() throws IOException {
            connector.close();
        }
    }
}
