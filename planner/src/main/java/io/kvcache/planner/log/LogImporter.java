package io.kvcache.planner.log;

import io.kvcache.planner.log.LoggedRequest.LoggedPrompt;
import io.kvcache.planner.log.TokenizerLoader.LogTokenizer;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceReader.TraceFormatException;
import io.kvcache.planner.trace.TraceRequest;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

/// Makes one trace of logs with one request a line.
///
/// Requests come in the order of their times, from the first one's on; one whose line tells no time
/// has that of the line before it. Lines that cannot be used are reported by file, number and
/// reason, and left out or refused.
public final class LogImporter {

    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private final LogTokenizer tokenizer;
    private final int blockTokens;
    private final BlockIdHasher blocks;
    private final MalformedLine.Handling handling;
    private final Consumer<String> report;
    private final List<TraceRequest> requests = new ArrayList<>();
    private long skipped;
    private long countedTokens;
    private long loggedTokens;

    /// @param blockTokens tokens of a block, above 0
    /// @param salt random bytes, which the caller must not keep
    /// @param handling what to do about lines that cannot be used
    /// @param report told of each line that is skipped, for people
    public LogImporter(
            LogTokenizer tokenizer,
            int blockTokens,
            byte[] salt,
            MalformedLine.Handling handling,
            Consumer<String> report) {
        this.tokenizer = tokenizer;
        this.blockTokens = blockTokens;
        blocks = new BlockIdHasher(salt, blockTokens);
        this.handling = handling;
        this.report = report;
    }

    /// The result of an import.
    ///
    /// @param skipped lines that were left out
    /// @param ofLogged tokens counted here over those that the log's `usage` tells, where it does; else NaN
    public record ImportResult(Trace trace, long skipped, double ofLogged) {}

    /// Reads one more log.
    ///
    /// @throws TraceFormatException when a line cannot be used and is to be refused
    /// @throws IOException when the file cannot be read
    public void read(Path file) throws IOException {
        long number = 0;
        long before = 0;
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                if (!line.isBlank()) {
                    TraceRequest request = read(file, number, line, before);
                    before = request == null ? before : request.timestampMillis();
                }
            }
        } catch (CharacterCodingException e) {
            throw new TraceFormatException(file + ": is not UTF-8 text"
                    + (number == 0 ? "; a log has one JSON object a line" : " after line " + number));
        }
    }

    private @Nullable TraceRequest read(Path file, long number, String line, long before) throws TraceFormatException {
        String reason;
        try {
            TraceRequest request = request(LoggedRequest.of(JSON.readTree(line)), before);
            requests.add(request);
            return request;
        } catch (JacksonException e) {
            reason = "not JSON: " + e.getOriginalMessage();
        } catch (RuntimeException e) { // a template may refuse a chat by any of them
            reason = e.getMessage() == null ? e.toString() : e.getMessage();
        }
        if (handling == MalformedLine.Handling.REFUSE) {
            throw new TraceFormatException(file + ":" + number + ": " + reason);
        }
        skipped++;
        report.accept(file + ":" + number + ": " + reason);
        return null;
    }

    private TraceRequest request(LoggedRequest logged, long before) {
        int[] tokens = tokenizer.tokens(logged.prompt());
        if (tokens.length == 0) {
            throw new IllegalArgumentException("the prompt has no token");
        }
        int answered = logged.outputTokens();
        String answer = logged.answer();
        if (answered < 0) {
            answered = answer == null ? 0 : tokenizer.tokens(new LoggedPrompt.Text(answer)).length;
        }
        if (logged.promptTokens() > 0) {
            countedTokens += tokens.length;
            loggedTokens += logged.promptTokens();
        }
        Long at = logged.atMillis();
        return new TraceRequest(at == null ? before : at, tokens.length, answered, blocks.of(tokens));
    }

    /// The trace of all that was read.
    ///
    /// @param name of the trace
    /// @throws TraceFormatException when no line could be used
    public ImportResult finish(String name) throws TraceFormatException {
        if (requests.isEmpty()) {
            throw new TraceFormatException(name + ": no line holds a request that can be used, of " + skipped);
        }
        requests.sort(Comparator.comparingLong(TraceRequest::timestampMillis));
        long start = requests.getFirst().timestampMillis();
        List<TraceRequest> shifted = requests.stream()
                .map(request -> new TraceRequest(
                        request.timestampMillis() - start,
                        request.inputTokens(),
                        request.outputTokens(),
                        request.hashIds()))
                .toList();
        double ofLogged = loggedTokens == 0 ? Double.NaN : (double) countedTokens / loggedTokens;
        return new ImportResult(new Trace(name, blockTokens, shifted), skipped, ofLogged);
    }

    /// Computes the ids of blocks in a trace: the first 63 bits of a SHA-256 over a salt, the id of the
    /// block before and the block's tokens.
    ///
    /// So an id identifies the whole prefix up to its block. A reader of the trace without the salt
    /// cannot test whether the trace contains a known text.
    private static final class BlockIdHasher {

        private final MessageDigest salted;
        private final int blockTokens;

        /// @param salt random bytes
        BlockIdHasher(byte[] salt, int blockTokens) {
            try {
                salted = MessageDigest.getInstance("SHA-256");
            } catch (NoSuchAlgorithmException impossible) {
                throw new IllegalStateException(impossible); // every JDK has it
            }
            salted.update(salt);
            this.blockTokens = blockTokens;
        }

        /// An id for each block, 0 to 2^63 - 1; the last may be partial.
        long[] of(int[] tokens) {
            long[] ids = new long[Math.ceilDiv(tokens.length, blockTokens)];
            byte[] before = {};
            for (int i = 0; i < ids.length; i++) {
                int end = Math.min(tokens.length, (i + 1) * blockTokens);
                ByteBuffer bytes = ByteBuffer.allocate((end - i * blockTokens) * Integer.BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN);
                for (int token = i * blockTokens; token < end; token++) {
                    bytes.putInt(tokens[token]);
                }
                before = digest(before, bytes.array());
                ids[i] = ByteBuffer.wrap(before).getLong() >>> 1;
            }
            return ids;
        }

        private byte[] digest(byte[] before, byte[] tokens) {
            try {
                MessageDigest digest = (MessageDigest) salted.clone();
                digest.update(before);
                return digest.digest(tokens);
            } catch (CloneNotSupportedException impossible) {
                throw new IllegalStateException(impossible); // the JDK's own can be cloned
            }
        }
    }

    /// Blocks of Qwen-Bailian's format.
    public static final int SMALL_BLOCK_TOKENS = 16;

    /// Writes a trace that every replay here reads: with blocks of 512 tokens as Mooncake's, with blocks of
    /// 16 as Qwen-Bailian's, each request a chat of its own. Replaces a file. Only its owner may read it: ids
    /// are hashes, but the times at which a user came back are private.
    ///
    /// @param trace with blocks of 512 or 16 tokens
    /// @throws IOException when it cannot be written
    public static void writeTrace(Trace trace, Path file) throws IOException {
        Files.deleteIfExists(file);
        Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        try (Writer out = new BufferedWriter(new OutputStreamWriter(
                Files.newOutputStream(file, StandardOpenOption.WRITE), StandardCharsets.US_ASCII))) {
            int chat = 0;
            for (TraceRequest request : trace.requests()) {
                out.write(toLine(trace.blockTokens(), request, chat++));
            }
        }
    }

    private static String toLine(int blockTokens, TraceRequest request, int chat) {
        String ids = Arrays.stream(request.hashIds()).mapToObj(Long::toString).collect(Collectors.joining(", "));
        long at = request.timestampMillis();
        String rest = String.format(
                Locale.ROOT,
                "\"input_length\": %d, \"output_length\": %d, \"hash_ids\": [%s]}%n",
                request.inputTokens(),
                request.outputTokens(),
                ids);
        return switch (blockTokens) {
            case Trace.BLOCK_TOKENS -> "{\"timestamp\": " + at + ", " + rest;
            case SMALL_BLOCK_TOKENS ->
                String.format(
                                Locale.ROOT,
                                "{\"chat_id\": %d, \"parent_chat_id\": -1, \"timestamp\": %d.%03d, \"type\": \"text\","
                                        + " \"turn\": 1, ",
                                chat,
                                at / 1000,
                                at % 1000)
                        + rest;
            default -> throw new IllegalArgumentException("blocks of " + blockTokens + " tokens have no format");
        };
    }
}
