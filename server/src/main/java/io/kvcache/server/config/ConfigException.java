package io.kvcache.server.config;

import io.kvcache.server.config.ServerConfig.LogConfig;
import java.util.List;

/// A configuration that cannot be used: everything that is wrong with it, one line each.
public final class ConfigException extends Exception {

    private static final long serialVersionUID = 1;

    private final transient List<String> problems;

    private final transient LogConfig log;

    private final transient ServerConfig readable;

    ConfigException(List<String> problems, LogConfig log, ServerConfig readable) {
        super(String.join("\n", problems));
        this.problems = List.copyOf(problems);
        this.log = log;
        this.readable = readable;
    }

    /// Returns the settings without those that are wrong, so that the files they name can be checked too.
    public ServerConfig readable() {
        return readable;
    }

    /// How the rest of the configuration says that problems are to be logged.
    public LogConfig log() {
        return log;
    }

    /// Each names the setting, where it was set, the value, and what it takes.
    public List<String> problems() {
        return problems;
    }
}
