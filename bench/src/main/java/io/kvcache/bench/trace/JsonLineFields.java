package io.kvcache.bench.trace;

import java.math.BigDecimal;
import java.util.stream.Collectors;
import tools.jackson.databind.JsonNode;

/// The fields of a trace's line, each an error that names it when it is not what it must be.
///
/// @param object a JSON object
record JsonLineFields(JsonNode object) {

    private static final long MILLIS = 1000;

    boolean has(String field) {
        return object.has(field);
    }

    /// Their names, for messages.
    String fieldNames() {
        return object.propertyNames().stream().collect(Collectors.joining(", "));
    }

    int countOf(String field) {
        return (int) wholeNumber(field, Integer.MAX_VALUE);
    }

    /// A whole number of any sign up to a limit.
    long wholeNumber(String field, long most) {
        JsonNode value = present(field);
        boolean isWhole = value.isNumber() && value.canConvertToExactIntegral() && value.canConvertToLong();
        if (!isWhole || value.longValue() > most) {
            throw new IllegalArgumentException(field + " is " + value + ", must be a whole number up to " + most);
        }
        return value.longValue();
    }

    /// Seconds with a fraction, as milliseconds; what is finer is cut off.
    long secondsAsMillis(String field) {
        JsonNode value = present(field);
        if (!value.isNumber()) {
            throw new IllegalArgumentException(field + " is " + value + ", must be a number of seconds");
        }
        BigDecimal millis = value.decimalValue().multiply(BigDecimal.valueOf(MILLIS));
        if (millis.abs().compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
            throw new IllegalArgumentException(field + " is " + value + ", must be below 9.2e15 seconds");
        }
        return millis.longValue();
    }

    /// An array of whole numbers.
    ///
    /// @param each what one is called, for messages
    long[] wholeNumbers(String field, String each) {
        JsonNode array = present(field);
        if (!array.isArray()) {
            throw new IllegalArgumentException(field + " is not an array");
        }
        long[] numbers = new long[array.size()];
        for (int i = 0; i < numbers.length; i++) {
            JsonNode number = array.get(i);
            if (!number.isIntegralNumber() || !number.canConvertToLong()) {
                throw new IllegalArgumentException(each + " is " + number + ", must be a whole number");
            }
            numbers[i] = number.longValue();
        }
        return numbers;
    }

    private JsonNode present(String field) {
        JsonNode value = object.get(field);
        if (value == null) {
            throw new IllegalArgumentException(field + " is missing");
        }
        return value;
    }
}
