package io.kvcache.core.contract;

import java.nio.file.Path;
import java.util.List;

/// The JVMs that tests start as processes.
public final class TestJvm {

    /// For a JVM that runs for some seconds: a server starts and stops in half the processor time. Not for tests of
    /// speed
    /// or of the flags that ship.
    public static final List<String> FLAGS = List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC");

    private TestJvm() {}

    /// The program `java` of this JVM.
    public static String program() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }
}
