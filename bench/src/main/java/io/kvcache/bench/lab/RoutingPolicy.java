package io.kvcache.bench.lab;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/// How requests are spread over instances that each have a cache of their own.
public enum RoutingPolicy {
    /// Anywhere.
    RANDOM,
    /// A session always to the same one.
    SESSION,
    /// To one that was sent the same prefix, if that is half the prompt or more and it has not been sent a
    /// fifth more tokens than the others; else to the one that was sent the fewest.
    PREFIX;

    /// The route of this name, if any.
    public static Optional<RoutingPolicy> named(String name) {
        return Arrays.stream(values())
                .filter(routingPolicy -> routingPolicy.commandName().equals(name))
                .findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return Arrays.stream(values()).map(RoutingPolicy::commandName).collect(Collectors.joining(", "));
    }

    /// Name on command lines and in output.
    public String commandName() {
        return name().toLowerCase(Locale.ROOT);
    }
}
