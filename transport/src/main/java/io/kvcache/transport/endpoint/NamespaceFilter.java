package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.Namespace;
import org.jspecify.annotations.Nullable;

/// Which namespaces clients may use, beside the limits of [EndpointAuth].
///
/// **Threads.** Any.
@FunctionalInterface
public interface NamespaceFilter {

    /// All of them.
    NamespaceFilter ALLOW_ALL = namespace -> null;

    /// Why clients may not use a namespace, or null when they may.
    @Nullable
    String rejectionReason(Namespace namespace);
}
