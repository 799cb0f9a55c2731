package io.kvcache.server.path;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Collects the classes whose methods run while it records.
///
/// **Threads.** Safe for any number.
public final class PathRecorder {

    private static final Map<String, Integer> ENTERED = new LinkedHashMap<>();

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
        return new ArrayList<>(ENTERED.keySet());
    }

    /// How many methods of a class were entered in the last recording.
    public static synchronized int entries(String className) {
        return ENTERED.getOrDefault(className, 0);
    }

    /// Called by every method of a traced class.
    public static void enter(String className) {
        if (recording && Thread.currentThread().getName().startsWith(thread)) {
            add(className);
        }
    }

    private static synchronized void add(String className) {
        ENTERED.merge(className, 1, Integer::sum);
    }
}
