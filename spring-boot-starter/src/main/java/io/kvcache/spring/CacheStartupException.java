package io.kvcache.spring;

/// A cache that cannot be opened at the start of the application, with what to do about it.
final class CacheStartupException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final String action;

    /// @param problem what is wrong, without secrets
    /// @param action what to do
    CacheStartupException(String problem, String action, Throwable cause) {
        super(problem, cause);
        this.action = action;
    }

    String action() {
        return action;
    }
}
