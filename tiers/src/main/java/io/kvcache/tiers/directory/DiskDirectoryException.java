package io.kvcache.tiers.directory;

import java.nio.file.Path;

/// A directory cannot be used for a disk tier. The message names the directory, what is wrong, and what to do;
/// what was in the directory has not been touched.
public final class DiskDirectoryException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    DiskDirectoryException(Path folder, String reason) {
        super(text(folder, reason));
    }

    DiskDirectoryException(Path folder, String reason, Throwable cause) {
        super(text(folder, reason), cause);
    }

    private static String text(Path folder, String reason) {
        return "Cannot use " + folder + " for a disk tier: " + reason;
    }
}
