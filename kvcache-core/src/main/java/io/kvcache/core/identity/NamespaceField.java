package io.kvcache.core.identity;

/// A named text of a namespace: what it may be, and its bytes.
///
/// @param required whether it must not be empty
/// @param secret whether its value is kept out of messages
record NamespaceField(String name, boolean required, boolean secret) {

    /// Long enough for any path of a model; short enough to register and log.
    static final int MAX_BYTES = 512;

    /// How much of a refused value a message shows.
    private static final int SHOWN_CHARS = 40;

    static NamespaceField required(String name) {
        return new NamespaceField(name, true, false);
    }

    static NamespaceField optional(String name) {
        return new NamespaceField(name, false, false);
    }

    static NamespaceField secret(String name) {
        return new NamespaceField(name, false, true);
    }

    String check(String value) {
        utf8(value);
        return value;
    }

    /// The value's UTF-8 bytes.
    byte[] utf8(String value) {
        if (value.isBlank() && (required || !value.isEmpty())) {
            throw refusal(value, "is blank");
        }
        byte[] bytes = Utf8.encode(name, value);
        if (bytes.length > MAX_BYTES) {
            throw refusal(value, "takes " + bytes.length + " bytes");
        }
        return bytes;
    }

    private IllegalArgumentException refusal(String value, String what) {
        String allowed = required ? "1 to " + MAX_BYTES : "none, or 1 to " + MAX_BYTES;
        return new IllegalArgumentException(
                "%s = %s %s; allowed: %s bytes of UTF-8, not blank".formatted(name, shown(value), what, allowed));
    }

    private String shown(String value) {
        if (secret) {
            return "(hidden)";
        }
        return value.length() <= SHOWN_CHARS ? "\"" + value + "\"" : "\"" + value.substring(0, SHOWN_CHARS) + "…\"";
    }
}
