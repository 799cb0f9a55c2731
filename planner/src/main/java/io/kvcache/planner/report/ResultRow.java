package io.kvcache.planner.report;

import java.lang.reflect.RecordComponent;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A row of a result: values by the names that programs rely on, in the order in which they were put.
public final class ResultRow {

    private final Map<String, @Nullable Object> values = new LinkedHashMap<>();

    /// Puts a value behind the others.
    ///
    /// @throws IllegalArgumentException when the row has the field
    public ResultRow put(String field, @Nullable Object value) {
        if (values.containsKey(field)) {
            throw new IllegalArgumentException("two columns have the name " + field);
        }
        values.put(field, value);
        return this;
    }

    /// Puts the components of a record.
    public ResultRow putAll(Record part) {
        for (RecordComponent component : part.getClass().getRecordComponents()) {
            try {
                component.getAccessor().setAccessible(true); // records of commands are not public
                put(component.getName(), component.getAccessor().invoke(part));
            } catch (ReflectiveOperationException failed) {
                throw new IllegalStateException("cannot read " + component, failed);
            }
        }
        return this;
    }

    /// The values by field; read-only.
    public Map<String, @Nullable Object> values() {
        return Collections.unmodifiableMap(values);
    }

    /// Returns the value of a field that is always a number.
    public double number(String field) {
        return ((Number) Objects.requireNonNull(values.get(field), field)).doubleValue();
    }

    /// Returns the value of a field that is always a whole number.
    public long count(String field) {
        return (long) number(field);
    }

    /// Returns the value of a field that is always there.
    public String text(String field) {
        return Objects.requireNonNull(values.get(field), field).toString();
    }
}
