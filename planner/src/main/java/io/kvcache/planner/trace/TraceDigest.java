package io.kvcache.planner.trace;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;

/// SHA-256 of a trace, in hexadecimal: which one the figures are of.
///
/// Of a file it is the digest of its bytes, as sha256sum prints it. Of a generated trace it is that of the
/// requests, a line each with time, lengths, session and ids: another generator has another digest, though the
/// name is the same.
public final class TraceDigest {

    private TraceDigest() {}

    /// Returns the digest of a loaded trace.
    ///
    /// @param trace that the source loads, whole
    /// @throws IOException when the file cannot be read
    public static String of(TraceSource source, Trace trace) throws IOException {
        return switch (source) {
            case TraceSource.File file -> ofFile(file.path());
            case TraceSource.Published published ->
                ofFile(new TraceFinder()
                        .find(published.name())
                        .orElseThrow(() -> new FileNotFoundException("the " + published.name() + " trace is gone")));
            case TraceSource.Seeded _ -> ofRequests(trace);
        };
    }

    /// Returns the digest of a file.
    public static String ofFile(Path file) throws IOException {
        MessageDigest digest = sha256();
        try (InputStream in = new DigestInputStream(Files.newInputStream(file), digest)) {
            in.transferTo(OutputStream.nullOutputStream());
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private static String ofRequests(Trace trace) {
        MessageDigest digest = sha256();
        for (TraceRequest request : trace.requests()) {
            String line = request.timestampMillis() + " " + request.inputTokens() + " " + request.outputTokens() + " "
                    + request.session() + " " + Arrays.toString(request.hashIds()) + "\n";
            digest.update(line.getBytes(StandardCharsets.US_ASCII));
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException absent) {
            throw new IllegalStateException("every Java has SHA-256", absent);
        }
    }
}
