package io.kvcache.server.block;

/// Whose a namespace is.
@FunctionalInterface
public interface Ownership {

    /// Everybody has his own.
    Ownership ASKERS = (asking, _, _) -> asking;

    /// The tenant that a namespace belongs to.
    ///
    /// @param asking the tenant who asks
    /// @param name of the namespace
    /// @param salt that it is to be registered with; empty for none
    String of(String asking, String name, String salt);
}
