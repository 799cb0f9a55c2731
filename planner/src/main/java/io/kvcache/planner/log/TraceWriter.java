package io.kvcache.planner.log;

import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/// Writes traces that every replay here reads: with blocks of 512 tokens as Mooncake's, with blocks
/// of 16 as Qwen-Bailian's, each request a chat of its own.
public final class TraceWriter {

    /// Blocks of Qwen-Bailian's format.
    public static final int SMALL_BLOCK_TOKENS = 16;

    private TraceWriter() {}

    /// Replaces a file. Only its owner may read it: ids are hashes, but the times at which a user came
    /// back are private.
    ///
    /// @param trace with blocks of 512 or 16 tokens
    /// @throws IOException when it cannot be written
    public static void write(Trace trace, Path file) throws IOException {
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
