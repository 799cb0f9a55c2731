package io.kvcache.bench.server;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.management.JMX;
import javax.management.MBeanServerConnection;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/// Measures the heap bytes that the server allocates for a GET, whatever the size of its value.
///
/// Counts the allocations of all threads of the server, minus those of the idle server in the same time.
final class AllocationBenchmark implements ServerBenchmark {

    private static final long HOST_BYTES = 2L << 30;
    private static final List<Integer> SIZES = List.of(4 << 10, 64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final Threshold THRESHOLD = new Threshold.AtMost(1024);

    @Override
    public String name() {
        return "allocation";
    }

    @Override
    public String title() {
        return "heap that a GET leaves behind";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        List<BenchResult> answers = new ArrayList<>();
        try (ServerProcess ours = ServerProcess.startCurrent(benchmarkOptions.limitHostBytes(HOST_BYTES));
                AllocationMeter meter = AllocationMeter.attach(ours.processId())) {
            for (int bytes : SIZES) {
                answers.add(measure(new ServerLoadSpec(false, bytes, 1), ours, meter, benchmarkOptions));
            }
        }
        return answers;
    }

    private static BenchResult measure(
            ServerLoadSpec load, ServerProcess ours, AllocationMeter meter, BenchmarkOptions benchmarkOptions)
            throws IOException, InterruptedException {
        benchmarkOptions.report("allocation of " + load.describe());
        load.fillKeys(ours.port());
        LoadGenerator gets = load.toGenerator(ours.port());
        gets.run(benchmarkOptions.time().multipliedBy(2)); // What is not compiled yet allocates what later is not.
        PairedSamples perGet = new PairedSamples();
        for (int round = 0; round < benchmarkOptions.count(); round++) {
            double idle = idle(meter, benchmarkOptions.time());
            long start = System.nanoTime();
            long before = meter.allocatedBytes();
            long count = gets.run(benchmarkOptions.time()).count();
            double seconds = (System.nanoTime() - start) / 1e9;
            perGet.add((meter.allocatedBytes() - before - idle * seconds) / count, 0);
        }
        MetricSpec metricSpec = new MetricSpec(
                load.name().replace("get-", "alloc-").replace("-1c", ""),
                "What does " + load.describe() + " leave on the heap?",
                "bytes");
        return perGet.toResult(metricSpec, "-", THRESHOLD);
    }

    /// Returns the bytes a second that the idle server allocates.
    private static double idle(AllocationMeter meter, Duration time) throws InterruptedException {
        long before = meter.allocatedBytes();
        Thread.sleep(time);
        return (meter.allocatedBytes() - before) / (time.toNanos() / 1e9);
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
            String address = agent(Long.toString(processId));
            JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address));
            MBeanServerConnection beans = connector.getMBeanServerConnection();
            return new AllocationMeter(connector, JMX.newMXBeanProxy(beans, name(), ThreadAllocations.class));
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

        private static ObjectName name() {
            try {
                return new ObjectName(ManagementFactory.THREAD_MXBEAN_NAME);
            } catch (MalformedObjectNameException bug) {
                throw new AssertionError(bug);
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
