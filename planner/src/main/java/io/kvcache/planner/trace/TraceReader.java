package io.kvcache.planner.trace;

import io.kvcache.planner.trace.TraceFormat.JsonLineFields;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
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
}
