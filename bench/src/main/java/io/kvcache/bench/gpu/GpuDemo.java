package io.kvcache.bench.gpu;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockTable;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.Locale;
import java.util.stream.IntStream;

/// Sequences that are more than host memory holds, kept with the help of the first GPU: what comes back
/// is checked byte by byte. Without a GPU, a device in plain Java stands in and the result says so.
public final class GpuDemo {

    private static final Namespace SPACE = Namespace.of("demo", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));
    private static final int BLOCK_BYTES = 1 << 20;
    private static final int SEQUENCES = 5;
    private static final int BLOCKS = 30;
    private static final long HOST_BYTES = 64L << 20;
    private static final long DEVICE_BYTES = 256L << 20;
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private GpuDemo() {}

    /// The result of the demo.
    ///
    /// @param device what it is called
    /// @param noGpu why there is none; empty when there is one
    /// @param put blocks of 1 MiB
    /// @param onDevice leading blocks of sequences that are on the device, where an engine could read
    ///     them
    /// @param back blocks that came back with all their bytes
    public record Result(String device, String noGpu, int put, int onDevice, int back) {

        /// Returns whether all blocks came back.
        public boolean passed() {
            return back == put;
        }

        /// For people.
        public String describe() {
            return String.format(
                    Locale.ROOT,
                    "%s%n%d blocks of 1 MiB were put through 64 MiB of host memory; %d lie on the device, where an engine"
                            + " could read them;%n%d came back with every byte: %s",
                    noGpu.isEmpty() ? "The GPU is " + device : "No GPU is used: " + noGpu + "\nInstead: " + device,
                    put,
                    onDevice,
                    back,
                    passed() ? "passed" : "failed");
        }
    }

    /// Runs it.
    public static Result run() {
        BenchDevice probe = BenchDevice.open(1);
        String name;
        try (DeviceDriver driver = probe.driver()) {
            name = driver.info().name();
        }
        CudaTier tier = probe.kind() == BenchDevice.Kind.FAKE
                ? CudaTier.withDriver(name, () -> FakeDeviceDriver.open(2 * DEVICE_BYTES), DEVICE_BYTES)
                : CudaTier.open(0, DEVICE_BYTES);
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .admission(AdmissionKind.ALWAYS)
                .tier(tier)
                .build()) {
            cache.register(SPACE);
            int put = 0;
            for (int sequence = 0; sequence < SEQUENCES; sequence++) {
                put += put(cache, chain(sequence));
                cache.flush(TIMEOUT); // What is put faster than it is written may leave host memory unwritten.
            }
            int back = 0;
            int onDevice = 0;
            for (int sequence = 0; sequence < SEQUENCES; sequence++) {
                back += readBack(cache, chain(sequence));
                try (DeviceBlockTable table = tier.acquire(chain(sequence), 0)) {
                    onDevice += table.endBlock();
                }
            }
            return new Result(name, probe.reason(), put, onDevice, back);
        }
    }

    private static BlockChain chain(int sequence) {
        int first = sequence * 1_000_000;
        return BlockChain.of(
                SPACE,
                IntStream.range(first, first + BLOCKS * SPACE.blockTokens()).toArray());
    }

    private static int put(TieredKvCache cache, BlockChain chain) {
        int put = 0;
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, TIMEOUT)) {
                if (writer.outcome() == PutOutcome.RESERVED) {
                    writer.copyFrom(BlockContent.of(chain.key(index)).toHeapSegment(BLOCK_BYTES));
                    writer.seal();
                    put++;
                }
            }
        }
        return put;
    }

    private static int readBack(TieredKvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain, 0, TIMEOUT)) {
            int ready = table.await(chain.length(), TIMEOUT);
            for (int index = 0; index < ready; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return ready;
        }
    }
}
