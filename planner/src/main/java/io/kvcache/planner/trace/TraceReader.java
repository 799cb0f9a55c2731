package io.kvcache.planner.trace;

import io.kvcache.planner.trace.TraceReader.TraceFormat.JsonLineFields;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.nio.IntBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Reads traces of one JSON object a line, in any [TraceFormat]: the first line that is one says which,
/// and all others must be of the same.
///
/// Lines end with LF or CRLF; blank lines are passed over; fields that are not known are ignored. Every
/// other line that cannot be used is reported with its number and the reason, and skipped or refused, as
/// the caller chooses. Requests come in the order of their time stamps, and where these are equal in that
/// of the file.
public final class TraceReader {

    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private final MalformedLine.Handling handling;
    private final Consumer<MalformedLine> report;

    /// @param handling what to do about lines that cannot be used
    /// @param report told of each line that is skipped
    public TraceReader(MalformedLine.Handling handling, Consumer<MalformedLine> report) {
        this.handling = handling;
        this.report = report;
    }

    /// Reads a whole file.
    ///
    /// @throws TraceFormatException when a line is malformed and to be refused, or no line holds a request
    /// @throws IOException when the file cannot be read
    public Trace read(Path file) throws IOException {
        if (Files.isDirectory(file)) {
            throw new TraceFormatException(file + ": is a directory; a trace is a file");
        }
        if (isGzip(file)) {
            throw new TraceFormatException(file + ": is compressed by gzip; unpack it first: gunzip -k " + file);
        }
        Lines read = new Lines();
        long number = 0;
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                if (!line.isBlank()) {
                    read(file, number, line, read);
                }
            }
        } catch (CharacterCodingException e) {
            throw new TraceFormatException(file + ": is not UTF-8 text"
                    + (number == 0 ? "; a trace has one JSON object a line" : " after line " + number));
        }
        TraceFormat format = read.format;
        if (format == null || read.requests.isEmpty()) {
            throw new TraceFormatException(file + ": holds no request");
        }
        read.requests.sort(Comparator.comparingLong(TraceRequest::timestampMillis));
        return new Trace(nameOf(file), format.blockTokens(), read.requests);
    }

    private static boolean isGzip(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            byte[] first = in.readNBytes(2);
            return first.length == 2 && (first[0] & 0xff) == 0x1f && (first[1] & 0xff) == 0x8b;
        }
    }

    /// The lines read so far.
    private static final class Lines {

        final List<TraceRequest> requests = new ArrayList<>();
        private @Nullable TraceFormat format;

        void add(String line) {
            JsonNode object = JSON.readTree(line);
            if (!object.isObject()) {
                throw new IllegalArgumentException("is not a JSON object");
            }
            JsonLineFields fields = new JsonLineFields(object);
            TraceFormat known = format == null ? TraceFormat.of(fields) : format;
            format = known;
            requests.add(known.parse(fields));
        }
    }

    private void read(Path file, long number, String line, Lines read) throws TraceFormatException {
        try {
            read.add(line);
        } catch (IllegalArgumentException | JacksonException e) {
            String reason = e instanceof JacksonException json ? "not JSON: " + reason(json) : message(e);
            if (handling == MalformedLine.Handling.REFUSE) {
                throw new TraceFormatException(file + ":" + number + ": " + reason);
            }
            report.accept(new MalformedLine(number, reason));
        }
    }

    /// Without where the parser began, which it does not know.
    private static String reason(JacksonException json) {
        return String.valueOf(json.getOriginalMessage()).replaceFirst(" \\(start marker at \\[.*\\]\\)$", "");
    }

    private static String message(Exception e) {
        return e.getMessage() == null ? e.toString() : e.getMessage();
    }

    /// Returns the name of the trace in a file: that of the file, without its ending.
    static String nameOf(Path file) {
        String name = String.valueOf(file.getFileName());
        return name.replaceFirst("(_trace)?\\.jsonl?$", "");
    }

    /// A line of a trace that could not be used.
    ///
    /// @param number counted from 1
    /// @param reason what is wrong with it, for people
    public record MalformedLine(long number, String reason) {

        /// The reaction to such a line.
        public enum Handling {
            /// Leave it out, report it and go on.
            SKIP,
            /// End with a [TraceFormatException].
            REFUSE
        }
    }

    /// A trace cannot be read as one; the message names the file, the line and the reason.
    public static final class TraceFormatException extends IOException {

        private static final long serialVersionUID = 1;

        /// @param message for people
        public TraceFormatException(String message) {
            super(message);
        }
    }

    /// How a trace's lines are to be understood.
    sealed interface TraceFormat {

        /// The format whose line this is.
        ///
        /// @throws IllegalArgumentException when it is none's
        static TraceFormat of(JsonLineFields first) {
            if (first.has("tokens")) {
                return new TokenFormat();
            }
            if (first.has("chat_id")) {
                return new QwenFormat();
            }
            if (first.has("hash_ids")) {
                return new MooncakeFormat();
            }
            if (first.has("kvcache_trace")) {
                throw new IllegalArgumentException(
                        "begins what a server wrote by --trace-out, must be: read by lab capture");
            }
            throw new IllegalArgumentException(
                    "is a request in no known format: it has the fields [" + first.fieldNames()
                            + "], and must have hash_ids (Mooncake), chat_id and hash_ids (Qwen-Bailian) or tokens (token ids)");
        }

        /// Tokens of a block.
        int blockTokens();

        /// Understands one line; a format may remember those before it.
        ///
        /// @throws IllegalArgumentException that names the field
        TraceRequest parse(JsonLineFields line);

        /// Mooncake's format: `timestamp` (milliseconds), `input_length`, `output_length` and `hash_ids`, an id
        /// for each 512 tokens, prefix-chained, and one for what is left, or none: full blocks only is a
        /// legal way to publish.
        ///
        /// Source of the format and of two traces: the repository kvcache-ai/Mooncake, folder
        /// FAST25-release/traces.
        final class MooncakeFormat implements TraceFormat {

            @Override
            public int blockTokens() {
                return Trace.BLOCK_TOKENS;
            }

            @Override
            public TraceRequest parse(JsonLineFields line) {
                TraceRequest request = new TraceRequest(
                        line.wholeNumber("timestamp", Long.MAX_VALUE),
                        line.countOf("input_length"),
                        line.countOf("output_length"),
                        line.wholeNumbers("hash_ids", "hash id"));
                request.requireBlocks(Trace.BLOCK_TOKENS);
                return request;
            }
        }

        /// The format of the Qwen-Bailian traces: `chat_id` and `parent_chat_id` (-1 for a chat that goes on
        /// from none), `timestamp` (seconds, with a fraction), `input_length`, `output_length` and
        /// `hash_ids`, an id for each 16 tokens. `type` and `turn` are passed over.
        ///
        /// A block's id is that of its own tokens, so that a block is known by its id and those before it, as
        /// replays know it anyway. The last block may be left out when it is partial. A session is a chat and
        /// all that go on from it.
        ///
        /// Source: the repository alibaba-edu/qwen-bailian-usagetraces-anon, README; Wang et al.: "KVCache
        /// cache in the wild", USENIX ATC 2025.
        final class QwenFormat implements TraceFormat {

            private static final int BLOCK_TOKENS = 16;
            private static final long NO_PARENT = -1;

            /// First chat of the session that a chat is part of.
            private final Map<Long, Long> sessions = new HashMap<>();

            @Override
            public int blockTokens() {
                return BLOCK_TOKENS;
            }

            @Override
            public TraceRequest parse(JsonLineFields line) {
                long chat = line.wholeNumber("chat_id", Long.MAX_VALUE);
                long parent = line.wholeNumber("parent_chat_id", Long.MAX_VALUE);
                if (chat < 0) {
                    throw new IllegalArgumentException("chat_id is " + chat + ", must be at least 0");
                }
                if (parent < NO_PARENT) {
                    throw new IllegalArgumentException(
                            "parent_chat_id is " + parent + ", must be at least " + NO_PARENT);
                }
                TraceRequest request = new TraceRequest(
                        line.secondsAsMillis("timestamp"),
                        line.countOf("input_length"),
                        line.countOf("output_length"),
                        line.wholeNumbers("hash_ids", "hash id"),
                        parent == NO_PARENT ? chat : sessions.getOrDefault(parent, parent));
                request.requireBlocks(BLOCK_TOKENS);
                sessions.put(chat, request.session());
                return request;
            }
        }

        /// Our own simple format: `tokens`, the ids of the prompt's tokens, and, if they are known, `timestamp`
        /// (milliseconds, 0 when absent) and `output_length` (0 when absent).
        ///
        /// Blocks have 16 tokens. Each gets a number by its tokens and the number of the block before it,
        /// compared exactly, in the order of appearance; the last may be partial.
        final class TokenFormat implements TraceFormat {

            private static final int BLOCK_TOKENS = 16;
            private static final long NONE = -1;

            private final Map<TokenBlock, Long> numbers = new HashMap<>();

            /// A block: the one before it, and its tokens.
            private record TokenBlock(long before, IntBuffer tokens) {}

            @Override
            public int blockTokens() {
                return BLOCK_TOKENS;
            }

            @Override
            public TraceRequest parse(JsonLineFields line) {
                int[] tokens = tokens(line);
                long at = line.has("timestamp") ? line.wholeNumber("timestamp", Long.MAX_VALUE) : 0;
                int answer = line.has("output_length") ? line.countOf("output_length") : 0;
                return new TraceRequest(at, tokens.length, answer, blocks(tokens));
            }

            private long[] blocks(int[] tokens) {
                long[] ids = new long[Math.ceilDiv(tokens.length, BLOCK_TOKENS)];
                long before = NONE;
                for (int i = 0; i < ids.length; i++) {
                    int start = i * BLOCK_TOKENS;
                    int end = Math.min(tokens.length, start + BLOCK_TOKENS);
                    TokenBlock tokenBlock =
                            new TokenBlock(before, IntBuffer.wrap(Arrays.copyOfRange(tokens, start, end)));
                    before = numbers.computeIfAbsent(tokenBlock, any -> (long) numbers.size());
                    ids[i] = before;
                }
                return ids;
            }

            private static int[] tokens(JsonLineFields line) {
                long[] numbers = line.wholeNumbers("tokens", "token");
                if (numbers.length == 0) {
                    throw new IllegalArgumentException("tokens is empty, must hold at least 1");
                }
                int[] tokens = new int[numbers.length];
                for (int i = 0; i < tokens.length; i++) {
                    if (numbers[i] < 0 || numbers[i] > Integer.MAX_VALUE) {
                        throw new IllegalArgumentException(
                                "token is " + numbers[i] + ", must be from 0 to " + Integer.MAX_VALUE);
                    }
                    tokens[i] = (int) numbers[i];
                }
                return tokens;
            }
        }

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
                    throw new IllegalArgumentException(
                            field + " is " + value + ", must be a whole number up to " + most);
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
    }
}
