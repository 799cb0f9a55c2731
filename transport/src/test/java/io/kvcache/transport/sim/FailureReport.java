package io.kvcache.transport.sim;

import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/// All that a run knows when it fails: where everything stands, what happened last, and what its threads
/// do.
///
/// It is printed at once, before anything is closed, as closing may fail too, or wait for what hangs.
final class FailureReport {

    private static final int FRAMES = 16;

    private FailureReport() {}

    /// @param states of everything that has one, each asked for now
    static void print(String run, Throwable failed, Map<String, Supplier<Object>> states, RunJournal journal) {
        StringBuilder told = new StringBuilder(run).append(" failed: ").append(failed);
        told.append("\n== states");
        states.forEach(
                (name, state) -> told.append("\n").append(name).append(": ").append(asked(state)));
        told.append("\n== last events\n").append(journal);
        told.append("\n== threads of this run, but for virtual ones").append(threads());
        System.err.println(told);
    }

    private static Object asked(Supplier<Object> state) {
        try {
            return state.get();
        } catch (RuntimeException unknown) {
            return unknown;
        }
    }

    /// Those of the calling thread's group: each seed has one.
    private static String threads() {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(each -> group.equals(each.getKey().getThreadGroup()))
                .sorted(Comparator.comparing(each -> each.getKey().getName()))
                .map(each ->
                        "\n" + each.getKey().getName() + " " + each.getKey().getState()
                                + Arrays.stream(each.getValue())
                                        .limit(FRAMES)
                                        .map(frame -> "\n    " + frame)
                                        .collect(Collectors.joining()))
                .collect(Collectors.joining());
    }
}
