package io.kvcache.server.path;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/// Collects the classes whose methods run while it records.
///
/// **Threads.** Safe for any number.
public final class PathRecorder {

    private static final Set<String> ENTERED = new LinkedHashSet<>();

    private static volatile String thread = "";
    private static volatile boolean recording;

    private PathRecorder() {}

    /// Starts to collect, on threads whose name starts with `prefix`.
    public static synchronized void start(String prefix) {
        ENTERED.clear();
        thread = prefix;
        recording = true;
    }

    /// Stops to collect.
    ///
    /// @return the classes in the order in which they were first entered
    public static synchronized List<String> stop() {
        recording = false;
        return new ArrayList<>(ENTERED);
    }

    /// Called by every method of a traced class.
    public static void enter(String className) {
        if (recording && Thread.currentThread().getName().startsWith(thread)) {
            add(className);
        }
    }

    private static synchronized void add(String className) {
        ENTERED.add(className);
    }
}
