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
final class FileReloader implements Runnable {

    private static final Logger LOG = System.getLogger(FileReloader.class.getName());

    /// Reads the files.
    @FunctionalInterface
    interface ReloadAction {
        void run() throws IOException;
    }

    private final String description;
    private final List<Path> files;
    private final ReloadAction reloadAction;
    private List<String> lastStamps;

    /// @param what for messages
    FileReloader(String what, List<Path> files, ReloadAction reloadAction) {
        this.description = what;
        this.files = List.copyOf(files);
        this.reloadAction = reloadAction;
        lastStamps = readStamps();
    }

    @Override
    public void run() {
        List<String> now = readStamps();
        if (now.equals(lastStamps)) {
            return;
        }
        lastStamps = now;
        try {
            reloadAction.run();
            LOG.log(Level.INFO, description + " read again");
        } catch (IOException unusable) {
            LOG.log(Level.WARNING, description + " changed and stay as they were: " + unusable.getMessage());
        }
    }

    private List<String> readStamps() {
        return files.stream().map(FileReloader::stamp).toList();
    }

    private static String stamp(Path file) {
        try {
            return Files.getLastModifiedTime(file) + " " + Files.size(file);
        } catch (IOException gone) {
            return "";
        }
    }
}
