package io.kvcache.server.http;

import io.kvcache.server.keyspace.PinnedValue;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// The conditions of a request about a value, as in RFC 9110, 13. They are compared with the value's ETag: its
/// checksum,
/// which also covers key and expiry, and its size.
///
/// Values keep no dates. A read ignores conditions on those, as that costs bytes at most; a write is refused.
///
/// @param match tags of which the value must have one; null for no such condition
/// @param noneMatch tags of which it must have none
/// @param range the part that is wanted
/// @param ifRange the tag with which the part is wanted, and all of another value
record ObjectConditions(
        @Nullable List<String> match,
        @Nullable List<String> noneMatch,
        @Nullable String range,
        @Nullable String ifRange) {

    private static final String ANY = "*";
    private static final String WEAK = "W/";
    private static final Pattern TAG = Pattern.compile("\\s*((?:W/)?\"[^\"]*\")\\s*(?:,|$)");

    /// @throws IllegalArgumentException when one cannot be read; the message is for the client
    static ObjectConditions of(HttpRequest request) {
        HttpHeaders headers = request.headers();
        boolean reads = request.method().equals(HttpMethod.GET);
        return new ObjectConditions(
                tags(headers, HttpHeaderNames.IF_MATCH),
                tags(headers, HttpHeaderNames.IF_NONE_MATCH),
                reads ? headers.get(HttpHeaderNames.RANGE) : null,
                reads ? headers.get(HttpHeaderNames.IF_RANGE) : null);
    }

    private static @Nullable List<String> tags(HttpHeaders headers, CharSequence name) {
        List<String> lines = headers.getAll(name);
        if (lines.isEmpty()) {
            return null;
        }
        String all = String.join(",", lines).strip();
        if (all.equals(ANY)) {
            return List.of(ANY);
        }
        List<String> tags = new ArrayList<>();
        Matcher next = TAG.matcher(all);
        int end = 0;
        while (next.find() && next.start() == end) {
            tags.add(next.group(1));
            end = next.end();
        }
        if (tags.isEmpty() || end < all.length()) {
            throw new IllegalArgumentException(
                    name + " is '" + all + "'; it takes * or ETags in double quotes, with commas between them");
        }
        return tags;
    }

    /// Returns the problem with a request that changes something, whatever the value is; null for none.
    static @Nullable ProblemDetails problemOfWrite(HttpRequest request) {
        HttpHeaders headers = request.headers();
        if (headers.contains(HttpHeaderNames.CONTENT_RANGE)) {
            return new ProblemDetails(
                    HttpResponseStatus.BAD_REQUEST,
                    "Content-Range with " + request.method() + "; it takes all of a value, and none of a part");
        }
        if (headers.contains(HttpHeaderNames.IF_UNMODIFIED_SINCE) && !headers.contains(HttpHeaderNames.IF_MATCH)) {
            return new ProblemDetails(
                    HttpResponseStatus.NOT_IMPLEMENTED,
                    "If-Unmodified-Since with " + request.method()
                            + "; values keep no dates, and /v1/objects takes If-Match with an ETag");
        }
        return null;
    }

    /// Returns whether a write has none.
    boolean isUnconditional() {
        return match == null && noneMatch == null;
    }

    /// Returns whether a write depends on nothing but whether the key is there.
    boolean isOfPresence() {
        return (match == null || match.contains(ANY)) && (noneMatch == null || noneMatch.contains(ANY));
    }

    /// Returns whether only the tag of a value tells what the reply is.
    boolean needsTag() {
        return !isUnconditional() || ifRange != null;
    }

    /// Returns whether a write of a key may go on.
    ///
    /// @param etag of the key's value; null without one
    boolean allowWrite(@Nullable String etag) {
        return matches(etag) && !isKnown(etag);
    }

    /// Returns the status of a read of a value; OK when it is sent.
    HttpResponseStatus statusOfRead(String etag) {
        if (!matches(etag)) {
            return HttpResponseStatus.PRECONDITION_FAILED;
        }
        return isKnown(etag) ? HttpResponseStatus.NOT_MODIFIED : HttpResponseStatus.OK;
    }

    /// Returns the part that is wanted of a value; null for all of it.
    @Nullable
    String rangeOf(String etag) {
        return ifRange == null || ifRange.strip().equals(etag) ? range : null;
    }

    private boolean matches(@Nullable String etag) {
        return match == null || (etag != null && (match.contains(ANY) || match.contains(etag)));
    }

    private boolean isKnown(@Nullable String etag) {
        return noneMatch != null
                && etag != null
                && (noneMatch.contains(ANY) || noneMatch.contains(etag) || noneMatch.contains(WEAK + etag));
    }

    /// The ETag of a value.
    static String etag(PinnedValue value) {
        return etag(value.checksum(), value.bytes());
    }

    /// The ETag of a value that is on disk alone.
    static String etag(int checksum, long bytes) {
        return "\"" + HexFormat.of().toHexDigits(checksum) + "-" + Long.toHexString(bytes) + "\"";
    }

    /// What a write is answered whose condition does not hold.
    static ProblemDetails failed() {
        return new ProblemDetails(
                HttpResponseStatus.PRECONDITION_FAILED,
                "the value is not as If-Match or If-None-Match asks, so nothing was changed; GET has its ETag");
    }
}
