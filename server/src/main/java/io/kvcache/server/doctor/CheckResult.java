package io.kvcache.server.doctor;

/// Something about a machine.
///
/// @param name of what was looked at
/// @param value what was found, or `unknown`
/// @param advice one line with what to do about it, often a command; empty when it is as it should be
public record CheckResult(String name, String value, String advice) {

    static final String UNKNOWN = "unknown";

    static CheckResult of(String name, String value) {
        return new CheckResult(name, value, "");
    }

    /// @param bad whether the advice is needed
    static CheckResult of(String name, String value, boolean bad, String advice) {
        return new CheckResult(name, value, bad ? advice : "");
    }
}
