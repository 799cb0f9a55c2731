package io.kvcache.bench.cli;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import picocli.CommandLine;

/// `bench gpu`, `demo --gpu` and what doctor says of GPUs, without the rest of the command line and the
/// libraries that it needs: for the kit that `kvcache gpu-kit` packs.
public final class GpuKit {

    private GpuKit() {}

    /// Prints what the GPUs are and how fast blocks get to the first, or, with the options of `bench gpu`,
    /// the latter alone; with `demo`, keeps blocks of a whole store there and looks at every byte that
    /// comes back.
    public static void main(String... options) {
        if (options.length == 1 && options[0].equals("demo")) {
            System.exit(new GpuDemoPage(new PrintWriter(System.out, true, StandardCharsets.UTF_8), false).show());
        }
        if (options.length == 0) {
            GpuProbe.lines().forEach(System.out::println);
        }
        System.exit(new CommandLine(new GpuBenchCommand()).execute(options));
    }
}
