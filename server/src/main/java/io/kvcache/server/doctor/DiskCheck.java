package io.kvcache.server.doctor;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/// What a directory is worth as a disk tier.
final class DiskCheck {

    /// Below that a disk is one that spins, or that somebody throttles.
    private static final double MIN_GIGABYTES = 0.2;

    private DiskCheck() {}

    /// Measures there, which takes some seconds.
    static List<CheckResult> run(Path folder) {
        try {
            return run(folder, DiskSpeed.measure(folder));
        } catch (IOException failed) {
            String reason = failed.getMessage() == null ? failed.toString() : failed.getMessage();
            return List.of(new CheckResult(
                    "disk " + folder, "not measured: " + reason, "name a directory with room that you may write to"));
        }
    }

    static List<CheckResult> run(Path folder, DiskSpeed speed) {
        boolean slow = speed.readGigabytes() < MIN_GIGABYTES;
        return List.of(
                CheckResult.of(
                        "disk " + folder,
                        speed.path(),
                        !speed.isDirect(),
                        speed.inMemory()
                                ? "name a directory on a disk: this one is memory"
                                : "use a file system with O_DIRECT, as ext4 and xfs: values pass the page cache here"),
                CheckResult.of("writes " + folder, gigabytes(speed.writeGigabytes())),
                CheckResult.of(
                        "reads " + folder,
                        gigabytes(speed.readGigabytes()),
                        slow,
                        "use a faster disk: computing values anew may take less time than reading them here"));
    }

    private static String gigabytes(double perSecond) {
        return String.format(Locale.ROOT, "%.2f GB/s", perSecond);
    }
}
