package io.kvcache.server.cli;

import io.kvcache.tiers.directory.DirectoryOptions;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectoryException;
import io.kvcache.tiers.disk.AuditReport;
import io.kvcache.tiers.disk.LogAudit;
import io.kvcache.tiers.disk.LogAudit.Scope;
import java.nio.file.Path;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/// Looks into the directory of a disk tier for a command.
final class TierDirectory {

    private TierDirectory() {}

    /// Audits the tier.
    ///
    /// @throws ParameterException when the directory is refused: it holds no tier, or somebody has it open
    static AuditReport audit(CommandSpec command, Path folder, Scope scope) {
        try (DiskDirectory directory = DiskDirectory.openExisting(folder, DirectoryOptions.defaults());
                ProgressLine progressLine =
                        new ProgressLine(command.commandLine().getErr())) {
            return LogAudit.run(
                    directory.device(), scope, (done, all) -> progressLine.update("region " + done + " of " + all));
        } catch (DiskDirectoryException refused) {
            String text = command.qualifiedName() + ": " + refused.getMessage();
            throw new ParameterException(command.commandLine(), text, refused);
        }
    }
}
