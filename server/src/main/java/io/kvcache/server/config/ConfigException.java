package io.kvcache.server.config;

import java.util.List;

/// A configuration that cannot be used: everything that is wrong with it, one line each.
public final class ConfigException extends Exception {

    private static final long serialVersionUID = 1;

    private final transient List<String> problems;

    ConfigException(List<String> problems) {
        super(String.join("\n", problems));
        this.problems = List.copyOf(problems);
    }

    /// Each names the setting, where it was set, the value, and what it takes.
    public List<String> problems() {
        return problems;
    }
}
