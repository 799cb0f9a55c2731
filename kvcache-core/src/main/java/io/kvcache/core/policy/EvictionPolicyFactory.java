package io.kvcache.core.policy;

/// Makes the instances of an eviction policy. A store has one instance for each size of slots and each share of memory.
///
/// This is a service: a jar on the class path adds a policy by an implementation with a public constructor without
/// parameters, named in `META-INF/services/io.kvcache.core.policy.EvictionPolicyFactory`. Settings, command lines and
/// [EvictionPolicies#find] then know it by its name. An embedder may also hand a factory to the builder of a store.
///
/// **Threads.** [#create] is called by the holder of a store's lock, the others by any thread.
public interface EvictionPolicyFactory {

    /// Name in configuration and on command lines: lower case, words joined by hyphens, and unlike any other.
    String commandName();

    /// Name for people.
    default String title() {
        return commandName();
    }

    /// Returns the publication of the algorithm.
    default String source() {
        return "";
    }

    /// Makes an instance for some of a store's records.
    ///
    /// @param records what the policy may know of them
    /// @param state shared by all instances of one store; its clock orders uses in all of them
    EvictionPolicy create(RecordView records, PolicyState state);

    /// Makes the only instance over these records.
    default EvictionPolicy create(RecordView records) {
        return create(records, new PolicyState(records.capacity()));
    }

    /// How many [LeafHeap]s an instance has. A store numbers at most 255, and refuses namespaces beyond.
    default int queueCount() {
        return 1;
    }

    /// Returns whether instances need a call for each block that an announced request will use.
    default boolean usesAnnouncements() {
        return false;
    }

    /// Returns whether instances use the labels and weights that callers give: [EvictionPolicy#label] and
    /// [EvictionPolicy#setWeight].
    default boolean usesLabels() {
        return false;
    }
}
