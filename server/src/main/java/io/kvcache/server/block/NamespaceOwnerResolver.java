package io.kvcache.server.block;

/// Whose a namespace is.
@FunctionalInterface
public interface NamespaceOwnerResolver {

    /// Everybody has his own.
    NamespaceOwnerResolver CALLER = (caller, _, _) -> caller;

    /// The tenant that a namespace belongs to.
    ///
    /// @param caller the tenant who asks
    /// @param name of the namespace
    /// @param salt that it is to be registered with; empty for none
    String ownerOf(String caller, String name, String salt);
}
