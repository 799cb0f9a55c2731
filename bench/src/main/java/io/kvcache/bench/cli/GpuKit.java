package io.kvcache.bench.cli;

import picocli.CommandLine;

/// `bench gpu` and what doctor says of a GPU, without the rest of the command line and the libraries that
/// it needs: for the kit that `kvcache gpu-kit` packs.
public final class GpuKit {

    private GpuKit() {}

    /// Prints what the GPUs are and, with the options of `bench gpu`, how fast blocks get there.
    public static void main(String... options) {
        GpuProbe.lines().forEach(System.out::println);
        System.exit(new CommandLine(new GpuBenchCommand()).execute(options));
    }
}
