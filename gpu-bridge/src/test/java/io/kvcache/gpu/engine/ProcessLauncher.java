package io.kvcache.gpu.engine;

import io.kvcache.core.contract.TestJvm;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/// Another process.
final class ProcessLauncher {

    private ProcessLauncher() {}

    /// A class of the tests in a JVM of its own.
    static Process java(Class<?> main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of(
                "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return start(command);
    }

    static Process start(List<String> command) throws IOException {
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
