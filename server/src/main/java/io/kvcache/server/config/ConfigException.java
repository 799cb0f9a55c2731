package io.kvcache.server.config;

import io.kvcache.server.config.ServerConfig.LogConfig;
import java.util.List;

/// A configuration that cannot be used: everything that is wrong with it, one line each.
public final class ConfigException extends Exception {

    private static final long serialVersionUID = 1;

    private final transient List<String> problems;

    private final transient LogConfig log;

    ConfigException(List<String> problems, LogConfig log) {
        super(String.join("\n", problems));
        this.problems = List.copyOf(problems);
        this.log = log;
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
