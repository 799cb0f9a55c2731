package io.kvcache.planner.lab;

import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.util.Arrays;

/// Model of an engine that prefills requests one after another, whenever they arrive.
///
/// A request's blocks that are on disk are read into host memory from its arrival on, in the order
/// of arrival, one request at a time. When they are there and the engine is free, its found blocks
/// are copied to the devices, and the rest of the prompt is computed. The time to the first token
/// is from the arrival to the end of that. The loop is open: a slow answer delays no arrival.
///
/// There are no batches: all cached and computed tokens of all requests pass through one queue. Answers keep
/// the engine only where its hardware says how long a token of them takes.
public final class EngineSimulator {

    private final EngineHardware hardware;
    private double[] firstTokens = new double[1024];
    private int requests;
    private double engineFree;
    private double diskFree;
    private double saved;
    private double loading;
    private double computing;
    private double busy;
    private long hostTokens;
    private long diskTokens;

    public EngineSimulator(EngineHardware hardware) {
        this.hardware = hardware;
    }

    /// One request.
    ///
    /// @param arrivalSeconds not before the one before it
    /// @param inputTokens of the prompt, above 0
    /// @param outputTokens of the answer, 0 and up
    public record Prompt(double arrivalSeconds, long inputTokens, long outputTokens) {}

    /// The tokens found in the cache.
    ///
    /// @param deviceTokens where the engine reads them, from the first on
    /// @param hostTokens behind these, in host memory
    /// @param diskTokens behind these, on disk
    public record CachedTokens(long deviceTokens, long hostTokens, long diskTokens) {
        long tokens() {
            return deviceTokens + hostTokens + diskTokens;
        }
    }

    /// The totals of all requests.
    ///
    /// @param prefillSecondsSaved that computing what was found would have taken
    /// @param loadSeconds that moving it took, on the disk and to the devices
    /// @param computeSeconds that the rest took
    /// @param busySeconds in which the engine copied, computed or answered
    /// @param p50Seconds until the first token
    /// @param p99Seconds until the first token
    /// @param hostBytesRead that were in host memory when they were wanted
    /// @param diskBytesRead that were on disk
    public record Summary(
            double prefillSecondsSaved,
            double loadSeconds,
            double computeSeconds,
            double busySeconds,
            double p50Seconds,
            double p99Seconds,
            long hostBytesRead,
            long diskBytesRead) {}

    /// Serves the next request.
    public void serve(Prompt prompt, CachedTokens cachedTokens) {
        double here = prompt.arrivalSeconds;
        if (cachedTokens.diskTokens > 0) {
            double reading = hardware.diskLatencySeconds()
                    + cachedTokens.diskTokens * (double) hardware.bytesPerToken() / hardware.diskBytesPerSecond();
            diskFree = Math.max(here, diskFree) + reading;
            here = diskFree;
            loading += reading;
        }
        long copied = cachedTokens.hostTokens + cachedTokens.diskTokens;
        double copying = copied * (double) hardware.bytesPerToken() / hardware.hostBytesPerSecond();
        double rest = hardware.prefill().seconds(cachedTokens.tokens(), prompt.inputTokens);
        double untilFirst = hardware.requestTimes().secondsPerRequest() + copying + rest;
        double answering = hardware.requestTimes().secondsPerOutputToken() * Math.max(0, prompt.outputTokens - 1);
        double first = Math.max(here, engineFree) + untilFirst;
        engineFree = first + answering;
        busy += untilFirst + answering;
        loading += copying;
        computing += rest;
        saved += hardware.prefill().seconds(0, cachedTokens.tokens());
        hostTokens += cachedTokens.hostTokens;
        diskTokens += cachedTokens.diskTokens;
        firstTokens = requests < firstTokens.length ? firstTokens : Arrays.copyOf(firstTokens, 2 * requests);
        firstTokens[requests++] = first - prompt.arrivalSeconds;
    }

    /// Returns the totals of the requests served so far.
    public Summary summary() {
        double[] sorted = Arrays.copyOf(firstTokens, requests);
        Arrays.sort(sorted);
        return new Summary(
                saved,
                loading,
                computing,
                busy,
                percentile(sorted, 0.5),
                percentile(sorted, 0.99),
                hostTokens * hardware.bytesPerToken(),
                diskTokens * hardware.bytesPerToken());
    }

    /// The least of the values that so large a share of them does not exceed; 0 when there are none.
    ///
    /// @param share above 0 to 1
    public static double percentile(double[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.ceil(share * sorted.length) - 1];
    }

    /// Gives an engine a trace's requests with what each of them has found.
    public static final class EngineFeed {

        private final Trace trace;
        private final int warmup;
        private final EngineSimulator engine;

        /// @param warmup leading requests that the engine does not get
        public EngineFeed(Trace trace, EngineHardware hardware, int warmup) {
            this.trace = trace;
            this.warmup = warmup;
            engine = new EngineSimulator(hardware);
        }

        /// One request, not before the one before it. Of a prompt all tokens but one can be found,
        /// since the last has to be computed.
        ///
        /// @param hostBlocks leading blocks in host memory
        /// @param blocks in host memory and on disk
        public void serve(int number, int hostBlocks, int blocks) {
            serve(number, 0, hostBlocks, blocks);
        }

        /// One request, where the engine has blocks of its own too.
        ///
        /// @param deviceBlocks leading blocks where the engine reads them
        /// @param hostBlocks there and in host memory
        /// @param blocks in all of these and on disk
        void serve(int number, int deviceBlocks, int hostBlocks, int blocks) {
            if (number < warmup) {
                return;
            }
            TraceRequest request = trace.requests().get(number);
            long most = request.inputTokens() - 1L;
            long device = Math.min(most, (long) deviceBlocks * trace.blockTokens());
            long host = Math.min(most, (long) hostBlocks * trace.blockTokens());
            long all = Math.min(most, (long) blocks * trace.blockTokens());
            engine.serve(
                    new EngineSimulator.Prompt(
                            request.timestampMillis() / 1000.0, request.inputTokens(), request.outputTokens()),
                    new EngineSimulator.CachedTokens(device, host - device, all - host));
        }

        /// Returns the totals of all requests.
        public EngineSimulator.Summary summary() {
            return engine.summary();
        }
    }
}
