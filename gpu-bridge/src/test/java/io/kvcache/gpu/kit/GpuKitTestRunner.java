package io.kvcache.gpu.kit;

import static org.junit.platform.engine.discovery.ClassNameFilter.includeClassNamePatterns;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/// Runs what can be run on a machine with a GPU and nothing else; with `-Dkvcache.gpu.real=true` on the
/// GPU itself.
///
/// Ends with 1 when a test failed, or none was found.
public final class GpuKitTestRunner {

    private GpuKitTestRunner() {}

    /// Runs them.
    public static void main(String... arguments) {
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(selectPackage("io.kvcache.gpu"))
                // The text of the kernels is compared with its source, which is not here.
                .filters(includeClassNamePatterns(
                        "io\\.kvcache\\.gpu\\.(?!kernel\\.KernelTextTest|cuda\\.DriverHeaderTest).*Test"))
                .build();
        SummaryGeneratingListener summary = new SummaryGeneratingListener();
        SkippedTestReporter skippedTestReporter = new SkippedTestReporter();
        Launcher launcher = LauncherFactory.create();
        launcher.execute(request, summary, skippedTestReporter);
        TestExecutionSummary result = summary.getSummary();
        PrintWriter out = new PrintWriter(System.out, true, StandardCharsets.UTF_8);
        result.printFailuresTo(out, 20);
        skippedTestReporter.printTo(out);
        out.printf(
                "%d passed, %d failed, %d skipped%n",
                result.getTestsSucceededCount(),
                result.getTotalFailureCount(),
                result.getTestsSkippedCount() + result.getTestsAbortedCount());
        System.exit(result.getTotalFailureCount() == 0 && result.getTestsSucceededCount() > 0 ? 0 : 1);
    }
}
