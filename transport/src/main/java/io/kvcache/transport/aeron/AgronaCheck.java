package io.kvcache.transport.aeron;

/// The flag without which Agrona fails at its first use, with an error that names no remedy.
final class AgronaCheck {

    private static final String FLAG = "--add-exports java.base/jdk.internal.misc=ALL-UNNAMED";

    private AgronaCheck() {}

    /// Loads nothing of Aeron.
    ///
    /// @throws IllegalStateException when this JVM was started without the flag
    static void require(String address) {
        boolean there = Object.class.getModule().isExported("jdk.internal.misc", AgronaCheck.class.getModule());
        if (!there) {
            throw new IllegalStateException(address + " needs a JVM that is started with " + FLAG);
        }
    }
}
