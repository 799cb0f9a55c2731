package io.kvcache.server;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Reads something again when its files have changed. When that fails, it is said and tried again with the next
/// change.
///
/// **Threads.** One at a time.
final class WatchedFiles implements Runnable {

    private static final Logger LOG = System.getLogger(WatchedFiles.class.getName());

    /// Reads the files.
    @FunctionalInterface
    interface Reload {
        void run() throws IOException;
    }

    private final String what;
    private final List<Path> files;
    private final Reload reload;
    private List<String> seen;

    /// @param what for messages
    WatchedFiles(String what, List<Path> files, Reload reload) {
        this.what = what;
        this.files = List.copyOf(files);
        this.reload = reload;
        seen = look();
    }

    @Override
    public void run() {
        List<String> now = look();
        if (now.equals(seen)) {
            return;
        }
        seen = now;
        try {
            reload.run();
            LOG.log(Level.INFO, what + " read again");
        } catch (IOException unusable) {
            LOG.log(Level.WARNING, what + " changed and stay as they were: " + unusable.getMessage());
        }
    }

    private List<String> look() {
        return files.stream().map(WatchedFiles::stamp).toList();
    }

    private static String stamp(Path file) {
        try {
            return Files.getLastModifiedTime(file) + " " + Files.size(file);
        } catch (IOException gone) {
            return "";
        }
    }
}
