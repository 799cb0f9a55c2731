package io.kvcache.server.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.function.DoubleSupplier;
import org.jspecify.annotations.Nullable;

/// Binds meters that read a number when they are asked for it.
///
/// A registry refers to the object of a counter weakly, and a counter whose object is gone stands still. So the object
/// is the registry itself, and the meter holds on to what it reads.
///
/// @param tags of all meters
record Meters(MeterRegistry registry, Tags tags) {

    static Meters of(MeterRegistry registry) {
        return new Meters(registry, Tags.empty());
    }

    /// The same with more tags.
    ///
    /// @param more names and values in turn
    Meters with(String... more) {
        return new Meters(registry, tags.and(more));
    }

    /// A number that goes up and down.
    ///
    /// @param help the text after `# HELP`
    void gauge(String name, String help, DoubleSupplier value) {
        gauge(name, null, help, value);
    }

    /// A number of units that goes up and down.
    void gauge(String name, @Nullable String unit, String help, DoubleSupplier value) {
        Gauge.builder(name, value::getAsDouble)
                .description(help)
                .baseUnit(unit)
                .tags(tags)
                .register(registry);
    }

    /// A number that only grows.
    void count(String name, String help, DoubleSupplier value) {
        count(name, null, help, value);
    }

    /// A number of units that only grows.
    void count(String name, @Nullable String unit, String help, DoubleSupplier value) {
        FunctionCounter.builder(name, registry, _ -> value.getAsDouble())
                .description(help)
                .baseUnit(unit)
                .tags(tags)
                .register(registry);
    }
}
