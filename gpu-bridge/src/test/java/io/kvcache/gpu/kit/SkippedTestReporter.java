package io.kvcache.gpu.kit;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/// Which tests did not run, and what each would have needed.
final class SkippedTestReporter implements TestExecutionListener {

    private final Map<String, List<String>> byReason = new TreeMap<>();

    private synchronized void note(String reason, TestIdentifier test) {
        byReason.computeIfAbsent(reason, _ -> new ArrayList<>()).add(name(test));
    }

    private static String name(TestIdentifier test) {
        if (test.getSource().orElse(null) instanceof MethodSource method) {
            String type = method.getClassName();
            return type.substring(type.lastIndexOf('.') + 1) + "." + method.getMethodName();
        }
        return test.getDisplayName();
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        note(reason, test);
    }

    /// An assumption says in brackets what it is about.
    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (result.getStatus() == Status.ABORTED) {
            String why = result.getThrowable().map(Throwable::getMessage).orElse("it does not say why");
            int end = why.indexOf(']');
            note(end > 0 && why.contains("[") ? why.substring(why.indexOf('[') + 1, end) : why, test);
        }
    }

    /// A line for each reason, and one for each test below it.
    void printTo(PrintWriter out) {
        byReason.forEach((reason, tests) -> {
            out.printf("skipped, as it takes %s:%n", reason);
            tests.stream().distinct().sorted().forEach(test -> out.printf("  %s%n", test));
        });
    }
}
