package io.kvcache.bench.trace;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Reads traces in Mooncake's format: one JSON object a line with `timestamp` (milliseconds), `input_length`,
/// `output_length` and `hash_ids`.
///
/// Lines end with LF or CRLF; blank lines are passed over; fields that are not known are ignored. Every other line
/// that cannot be used is reported with its number and the reason, and skipped or refused, as the caller chooses.
///
/// Source of the format and of two traces: the repository kvcache-ai/Mooncake, folder FAST25-release/traces.
public final class MooncakeTraceReader {

    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private final MalformedLine.Choice choice;
    private final Consumer<MalformedLine> report;

    /// @param choice what to do about lines that cannot be used
    /// @param report told of each line that is skipped
    public MooncakeTraceReader(MalformedLine.Choice choice, Consumer<MalformedLine> report) {
        this.choice = choice;
        this.report = report;
    }

    /// Reads a whole file.
    ///
    /// @throws TraceFormatException when a line is malformed and to be refused, or no line holds a request
    /// @throws IOException when the file cannot be read
    public Trace read(Path file) throws IOException {
        List<TraceRequest> requests = new ArrayList<>();
        long number = 0;
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                if (!line.isBlank()) {
                    read(file, number, line, requests);
                }
            }
        } catch (CharacterCodingException e) {
            throw new TraceFormatException(file + ": not UTF-8 text after line " + number);
        }
        if (requests.isEmpty()) {
            throw new TraceFormatException(file + ": holds no request");
        }
        return new Trace(nameOf(file), requests);
    }

    private void read(Path file, long number, String line, List<TraceRequest> requests) throws TraceFormatException {
        try {
            requests.add(parse(line));
        } catch (IllegalArgumentException | JacksonException e) {
            String reason = e instanceof JacksonException json ? "not JSON: " + json.getOriginalMessage() : message(e);
            if (choice == MalformedLine.Choice.REFUSE) {
                throw new TraceFormatException(file + ":" + number + ": " + reason);
            }
            report.accept(new MalformedLine(number, reason));
        }
    }

    private static TraceRequest parse(String line) {
        JsonNode object = JSON.readTree(line);
        if (!object.isObject()) {
            throw new IllegalArgumentException("is not a JSON object");
        }
        return new TraceRequest(
                whole(object, "timestamp", Long.MAX_VALUE),
                (int) whole(object, "input_length", Integer.MAX_VALUE),
                (int) whole(object, "output_length", Integer.MAX_VALUE),
                ids(object));
    }

    private static long whole(JsonNode object, String field, long most) {
        JsonNode value = present(object, field);
        boolean isWhole = value.isNumber() && value.canConvertToExactIntegral() && value.canConvertToLong();
        if (!isWhole || value.longValue() > most) {
            throw new IllegalArgumentException(field + " is " + value + ", must be a whole number up to " + most);
        }
        return value.longValue();
    }

    private static long[] ids(JsonNode object) {
        JsonNode array = present(object, "hash_ids");
        if (!array.isArray()) {
            throw new IllegalArgumentException("hash_ids is not an array");
        }
        long[] ids = new long[array.size()];
        for (int i = 0; i < ids.length; i++) {
            JsonNode id = array.get(i);
            if (!id.isIntegralNumber() || !id.canConvertToLong()) {
                throw new IllegalArgumentException("hash id is " + id + ", must be a whole number");
            }
            ids[i] = id.longValue();
        }
        return ids;
    }

    private static JsonNode present(JsonNode object, String field) {
        JsonNode value = object.get(field);
        if (value == null) {
            throw new IllegalArgumentException(field + " is missing");
        }
        return value;
    }

    private static String message(Exception e) {
        return e.getMessage() == null ? e.toString() : e.getMessage();
    }

    private static String nameOf(Path file) {
        String name = String.valueOf(file.getFileName());
        return name.replaceFirst("(_trace)?\\.jsonl?$", "");
    }
}
