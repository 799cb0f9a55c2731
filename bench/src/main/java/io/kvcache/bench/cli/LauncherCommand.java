package io.kvcache.bench.cli;

import java.util.List;

/// A command that the launcher script handles before any Java of ours runs; here for `help` only.
record LauncherCommand(String name, CommandGroup group, String description) {

    static final List<LauncherCommand> ALL = List.of(
            new LauncherCommand("test", CommandGroup.CHECK, "Run all tests, or with --quick those of two minutes."),
            new LauncherCommand("gpu-kit", CommandGroup.DEVELOP, "Pack tests and benchmarks for a machine with a GPU."),
            new LauncherCommand("jar", CommandGroup.DEVELOP, "Make one jar of all, for java -jar."),
            new LauncherCommand("build", CommandGroup.DEVELOP, "Build without checks; other commands do when needed."),
            new LauncherCommand("clean", CommandGroup.DEVELOP, "Remove what was built."));
}
