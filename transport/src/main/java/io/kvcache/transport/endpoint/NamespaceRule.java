package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.Namespace;
import org.jspecify.annotations.Nullable;

/// Which namespaces clients may use, beside the limits of [Access].
///
/// **Threads.** Any.
@FunctionalInterface
public interface NamespaceRule {

    /// All of them.
    NamespaceRule ANY = namespace -> null;

    /// Why clients may not use a namespace, or null when they may.
    @Nullable
    String refusal(Namespace namespace);
}
