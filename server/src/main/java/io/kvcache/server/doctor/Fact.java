package io.kvcache.server.doctor;

/// Something about a machine.
///
/// @param name of what was looked at
/// @param value what was found, or `unknown`
/// @param advice one line with what to do about it, often a command; empty when it is as it should be
public record Fact(String name, String value, String advice) {

    static final String UNKNOWN = "unknown";

    static Fact of(String name, String value) {
        return new Fact(name, value, "");
    }

    /// @param bad whether the advice is needed
    static Fact of(String name, String value, boolean bad, String advice) {
        return new Fact(name, value, bad ? advice : "");
    }
}
