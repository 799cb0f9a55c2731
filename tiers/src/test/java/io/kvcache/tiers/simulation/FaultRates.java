package io.kvcache.tiers.simulation;

import java.util.EnumMap;
import java.util.Map;

/// How often each [Fault] strikes a [FaultyDevice], and how long its operations take.
///
/// @param probabilities of each fault for each operation it can strike, 0.0 to 1.0; 0.0 where absent
/// @param maxLatencyTicks longest time of an operation, in ticks of the virtual clock; each takes 0 to this many
public record FaultRates(Map<Fault, Double> probabilities, int maxLatencyTicks) {

    public FaultRates {
        probabilities.forEach((fault, probability) -> {
            if (!(probability >= 0 && probability <= 1)) {
                throw new IllegalArgumentException("%s must be from 0.0 to 1.0, is %s".formatted(fault, probability));
            }
        });
        if (maxLatencyTicks < 0) {
            throw new IllegalArgumentException("maxLatencyTicks must be at least 0, is " + maxLatencyTicks);
        }
        probabilities = Map.copyOf(probabilities);
    }

    /// No faults and no latency: operations end at the next poll.
    public static FaultRates none() {
        return new FaultRates(Map.of(), 0);
    }

    /// These rates with another probability of one fault.
    public FaultRates with(Fault fault, double probability) {
        Map<Fault, Double> changed = new EnumMap<>(Fault.class);
        changed.putAll(probabilities);
        changed.put(fault, probability);
        return new FaultRates(changed, maxLatencyTicks);
    }

    /// These rates with another latency.
    public FaultRates withMaxLatencyTicks(int ticks) {
        return new FaultRates(probabilities, ticks);
    }

    double of(Fault fault) {
        return probabilities.getOrDefault(fault, 0.0);
    }

    /// Effect of a [FaultyDevice] on an operation.
    public enum Fault {
        /// A read ends with EIO, and its target is full of junk.
        READ_ERROR,
        /// A read is done, and one bit of it is wrong.
        BIT_FLIP,
        /// A write ends with EIO, and was done in part.
        WRITE_ERROR,
        /// A write is done, but only a first part of it arrived.
        TORN_WRITE,
        /// A write is done, but went elsewhere.
        MISDIRECTED_WRITE,
        /// A write is done, but nothing arrived.
        LOST_WRITE,
        /// A write ends with ENOSPC, and nothing arrived.
        NO_SPACE,
        /// A sync ends with EIO, and nothing became durable.
        SYNC_ERROR,
        /// An operation does not end until [FaultyDevice#resume].
        HANG
    }
}
