package io.kvcache.tiers.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// Binds meters that read a number of one source, each time that they are asked for it.
///
/// A registry refers to the object of a counter weakly, and a counter whose object is gone stands still. So the object
/// is the registry itself, and the meter holds on to what it reads.
///
/// @param tags of all meters
/// @param source asked at each reading
/// @param <S> what is read
@SuppressWarnings("exports") // Micrometer is optional.
public record Meters<S extends @Nullable Object>(MeterRegistry registry, Tags tags, Supplier<S> source) {

    /// The same with more tags.
    ///
    /// @param more names and values in turn
    public Meters<S> with(String... more) {
        return new Meters<>(registry, tags.and(more), source);
    }

    /// Meters of a part of the source, with the same tags.
    public <T extends @Nullable Object> Meters<T> of(Function<S, T> part) {
        return new Meters<>(registry, tags, () -> part.apply(source.get()));
    }

    /// A number that goes up and down.
    ///
    /// @param help the text after `# HELP`
    public void gauge(String name, String help, ToDoubleFunction<S> value) {
        gauge(name, null, help, value);
    }

    /// A number of units that goes up and down.
    ///
    /// @param unit becomes a part of the name
    public void gauge(String name, @Nullable String unit, String help, ToDoubleFunction<S> value) {
        Gauge.builder(name, () -> value.applyAsDouble(source.get()))
                .description(help)
                .baseUnit(unit)
                .tags(tags)
                .register(registry);
    }

    /// A number that only grows.
    public void count(String name, String help, ToDoubleFunction<S> value) {
        count(name, null, help, value);
    }

    /// A number of units that only grows.
    public void count(String name, @Nullable String unit, String help, ToDoubleFunction<S> value) {
        FunctionCounter.builder(name, registry, _ -> value.applyAsDouble(source.get()))
                .description(help)
                .baseUnit(unit)
                .tags(tags)
                .register(registry);
    }

    /// Numbers of one name that only grow, one for each value of a tag.
    public Counts<S> counts(String name, @Nullable String unit, String help, String tag) {
        return new Counts<>(this, name, unit, help, tag);
    }

    /// Counters of one name.
    ///
    /// @param tag by which they differ
    public record Counts<S extends @Nullable Object>(
            Meters<S> meters, String name, @Nullable String unit, String help, String tag) {

        /// Adds the counter of a value of the tag.
        public Counts<S> add(String value, ToDoubleFunction<S> count) {
            meters.with(tag, value).count(name, unit, help, count);
            return this;
        }
    }
}
