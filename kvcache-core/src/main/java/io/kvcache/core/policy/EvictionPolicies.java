package io.kvcache.core.policy;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.stream.Collectors;

/// Finds eviction policies by name or by class.
public final class EvictionPolicies {

    private static final List<EvictionPolicyFactory> ALL = load();

    private EvictionPolicies() {}

    private static List<EvictionPolicyFactory> load() {
        List<EvictionPolicyFactory> all = new ArrayList<>();
        all.add(PolicyKind.LRU);
        ServiceLoader.load(EvictionPolicyFactory.class).forEach(all::add);
        all.add(PolicyKind.IMPORTANCE);
        List<String> names =
                all.stream().map(EvictionPolicyFactory::commandName).distinct().toList();
        if (names.size() < all.size()) {
            throw new IllegalStateException("two eviction policies on the class path have the same name: "
                    + all.stream()
                            .map(each ->
                                    each.commandName() + " (" + each.getClass().getName() + ")")
                            .collect(Collectors.joining(", ")));
        }
        return List.copyOf(all);
    }

    /// The policies on the class path: those that ship with the store, and services.
    public static List<EvictionPolicyFactory> all() {
        return ALL;
    }

    /// The policy of a name, if any.
    public static Optional<EvictionPolicyFactory> find(String name) {
        return ALL.stream().filter(each -> each.commandName().equals(name)).findFirst();
    }

    /// All names, for messages: `lru, importance`.
    public static String names() {
        return ALL.stream().map(EvictionPolicyFactory::commandName).collect(Collectors.joining(", "));
    }

    /// The policy of a class: an [EvictionPolicyFactory] with a public constructor without parameters, or an
    /// [EvictionPolicy] with a public constructor that takes a [RecordView] and a [PolicyState]. The latter is
    /// known by its simple name.
    ///
    /// @throws IllegalArgumentException when the class is not on the class path, or is neither
    public static EvictionPolicyFactory ofClass(String className) {
        return ofClass(className, EvictionPolicies.class.getClassLoader());
    }

    /// The same for a class that is not on the class path.
    ///
    /// @param loader of the class, above which this class is the same one
    /// @throws IllegalArgumentException when the loader does not find the class, or it is neither
    public static EvictionPolicyFactory ofClass(String className, ClassLoader loader) {
        Class<?> type;
        try {
            type = Class.forName(className, true, loader);
        } catch (ClassNotFoundException | LinkageError missing) {
            throw new IllegalArgumentException(
                    "policy class " + className + " is not on the class path (" + missing + ")", missing);
        }
        if (EvictionPolicyFactory.class.isAssignableFrom(type)) {
            return (EvictionPolicyFactory) instantiate(constructor(type));
        }
        if (EvictionPolicy.class.isAssignableFrom(type)) {
            return new OfConstructor(type.getSimpleName(), constructor(type, RecordView.class, PolicyState.class));
        }
        throw new IllegalArgumentException("policy class " + className + " implements neither "
                + EvictionPolicy.class.getName() + " nor " + EvictionPolicyFactory.class.getName());
    }

    private static Constructor<?> constructor(Class<?> type, Class<?>... parameters) {
        try {
            Constructor<?> found = type.getConstructor(parameters);
            if (Modifier.isPublic(type.getModifiers()) && !Modifier.isAbstract(type.getModifiers())) {
                return found;
            }
        } catch (NoSuchMethodException none) {
            // told below, as a class that is not public is
        }
        throw new IllegalArgumentException("policy class " + type.getName()
                + " must be public and have a public constructor "
                + (parameters.length == 0 ? "without parameters" : "with the parameters (RecordView, PolicyState)"));
    }

    private static Object instantiate(Constructor<?> constructor, Object... arguments) {
        String type = constructor.getDeclaringClass().getName();
        try {
            return constructor.newInstance(arguments);
        } catch (InvocationTargetException failed) {
            throw new IllegalArgumentException(
                    "the constructor of policy class " + type + " failed: " + failed.getCause(), failed.getCause());
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalArgumentException("policy class " + type + " cannot be made: " + impossible, impossible);
        }
    }

    /// A policy that was given by its class alone.
    private record OfConstructor(String commandName, Constructor<?> constructor) implements EvictionPolicyFactory {
        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return (EvictionPolicy) instantiate(constructor, records, state);
        }
    }
}
