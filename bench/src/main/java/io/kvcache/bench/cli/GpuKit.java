package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.BenchDevice;
import io.kvcache.bench.gpu.GpuDemo;
import io.kvcache.gpu.GpuSupport;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;

/// `bench gpu`, `demo --gpu` and what doctor says of GPUs, without the rest of the command line and the
/// libraries that it needs: for the kit that `kvcache gpu-kit` packs.
public final class GpuKit {

    private GpuKit() {}

    private static final long MAX_BUSY_NANOS = TimeUnit.MINUTES.toNanos(30);

    /// With `probe`, prints what the GPUs are; with `demo`, keeps blocks of a whole store on the
    /// first and looks at every byte that comes back; with `busy`, has it work until this is
    /// killed. Else compares, with the options of `bench gpu`.
    public static void main(String... options) {
        System.exit(
                switch (options.length == 1 ? options[0] : "") {
                    case "probe" -> probe();
                    case "demo" -> demo();
                    case "busy" -> keepBusy();
                    default -> new CommandLine(new GpuBenchCommand()).execute(options);
                });
    }

    private static int demo() {
        GpuDemo.Result result = GpuDemo.run();
        System.out.println(result.describe());
        return result.passed() ? 0 : 1;
    }

    private static int probe() {
        new GpuSupport().describeDevices().forEach(System.out::println);
        return 0;
    }

    private static int keepBusy() {
        BenchDevice device = BenchDevice.open(1L << 30);
        device.keepBusy(MAX_BUSY_NANOS, () -> System.out.println("busy"));
        return 0;
    }
}
