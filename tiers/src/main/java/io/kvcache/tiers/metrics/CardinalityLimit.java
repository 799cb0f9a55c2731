package io.kvcache.tiers.metrics;

import io.kvcache.core.identity.Namespace;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/// Keeps the number of time series bounded, however many namespaces and tenants come.
///
/// **Threads.** Any.
final class CardinalityLimit {

    /// Pairs of namespace and tenant with series of their own. A tenant can make namespaces at will; a metrics
    /// store that pays for each series cannot.
    static final int MAX_LABELS = 50;

    private static final Label OTHER = new Label("other", "other");

    private final Map<Namespace, Label> labels = new HashMap<>();
    private final Set<Label> distinct = new HashSet<>();
    private final Set<Label> bound = new HashSet<>();

    record Label(String namespace, String tenant) {}

    /// The label that a namespace counts under.
    synchronized Label of(Namespace namespace) {
        return labels.computeIfAbsent(namespace, this::assign);
    }

    private Label assign(Namespace namespace) {
        Label own = new Label(namespace.model(), namespace.tenant());
        return distinct.contains(own) || (distinct.size() < MAX_LABELS && distinct.add(own)) ? own : OTHER;
    }

    /// Whether this label is bound for the first time.
    synchronized boolean markBound(Label label) {
        return bound.add(label);
    }
}
