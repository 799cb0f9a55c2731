package io.kvcache.bench.lab;

import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceRequest;
import java.util.Arrays;

/// Model of an engine that prefills requests one after another, whenever they arrive.
///
/// A request's blocks that are on disk are read into host memory from its arrival on, in the order
/// of arrival, one request at a time. When they are there and the engine is free, its found blocks
/// are copied to the devices, and the rest of the prompt is computed. The time to the first token
/// is from the arrival to the end of that. The loop is open: a slow answer delays no arrival.
///
/// Decoding is left out, as are batches: all cached and computed tokens of all requests pass through one
/// queue.
public final class EngineSimulator {

    private final EngineHardware hardware;
    private double[] firstTokens = new double[1024];
    private int requests;
    private double engineFree;
    private double diskFree;
    private double saved;
    private double loading;
    private double computing;
    private long hostTokens;
    private long diskTokens;

    public EngineSimulator(EngineHardware hardware) {
        this.hardware = hardware;
    }

    /// One request.
    ///
    /// @param arrivalSeconds not before the one before it
    /// @param inputTokens of the prompt, above 0
    public record Prompt(double arrivalSeconds, long inputTokens) {}

    /// The tokens found in the cache.
    ///
    /// @param hostTokens in host memory, from the first on
    /// @param diskTokens behind these, on disk
    public record CachedTokens(long hostTokens, long diskTokens) {
        long tokens() {
            return hostTokens + diskTokens;
        }
    }

    /// The totals of all requests.
    ///
    /// @param prefillSecondsSaved that computing what was found would have taken
    /// @param loadSeconds that moving it took, on the disk and to the devices
    /// @param computeSeconds that the rest took
    /// @param p50Seconds until the first token
    /// @param p99Seconds until the first token
    /// @param hostBytesRead that were in host memory when they were wanted
    /// @param diskBytesRead that were on disk
    public record Summary(
            double prefillSecondsSaved,
            double loadSeconds,
            double computeSeconds,
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
        double copying = cachedTokens.tokens() * (double) hardware.bytesPerToken() / hardware.hostBytesPerSecond();
        double rest = hardware.prefill().seconds(cachedTokens.tokens(), prompt.inputTokens);
        engineFree = Math.max(here, engineFree) + copying + rest;
        loading += copying;
        computing += rest;
        saved += hardware.prefill().seconds(0, cachedTokens.tokens());
        hostTokens += cachedTokens.hostTokens;
        diskTokens += cachedTokens.diskTokens;
        firstTokens = requests < firstTokens.length ? firstTokens : Arrays.copyOf(firstTokens, 2 * requests);
        firstTokens[requests++] = engineFree - prompt.arrivalSeconds;
    }

    /// Returns the totals of the requests served so far.
    public Summary summary() {
        double[] sorted = Arrays.copyOf(firstTokens, requests);
        Arrays.sort(sorted);
        return new Summary(
                saved,
                loading,
                computing,
                percentile(sorted, 0.5),
                percentile(sorted, 0.99),
                hostTokens * hardware.bytesPerToken(),
                diskTokens * hardware.bytesPerToken());
    }

    private static double percentile(double[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.ceil(share * sorted.length) - 1];
    }

    /// Gives an engine a trace's requests with what each of them has found.
    static final class EngineFeed {

        private final Trace trace;
        private final int warmup;
        private final EngineSimulator engine;

        /// @param warmup leading requests that the engine does not get
        EngineFeed(Trace trace, EngineHardware hardware, int warmup) {
            this.trace = trace;
            this.warmup = warmup;
            engine = new EngineSimulator(hardware);
        }

        /// One request, not before the one before it. Of a prompt all tokens but one can be found,
        /// since the last has to be computed.
        ///
        /// @param hostBlocks leading blocks in host memory
        /// @param blocks in host memory and on disk
        void serve(int number, int hostBlocks, int blocks) {
            if (number < warmup) {
                return;
            }
            TraceRequest request = trace.requests().get(number);
            long most = request.inputTokens() - 1L;
            long host = Math.min(most, (long) hostBlocks * trace.blockTokens());
            long all = Math.min(most, (long) blocks * trace.blockTokens());
            engine.serve(
                    new EngineSimulator.Prompt(request.timestampMillis() / 1000.0, request.inputTokens()),
                    new EngineSimulator.CachedTokens(host, all - host));
        }

        /// Returns the totals of all requests.
        EngineSimulator.Summary summary() {
            return engine.summary();
        }
    }
}
