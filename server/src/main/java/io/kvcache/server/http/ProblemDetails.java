package io.kvcache.server.http;

import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.quota.ByteBudget;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.LinkedHashMap;
import java.util.Map;

/// An error reply in the format of RFC 9457.
///
/// @param type what programs know it by; `about:blank` where the status says it all
/// @param detail a sentence for people
/// @param members more for programs, in order
public record ProblemDetails(HttpResponseStatus status, String type, String detail, Map<String, Object> members) {

    static final String CONTENT_TYPE = "application/problem+json";

    private static final String TYPE_PREFIX = "urn:kvcache:problem:";

    public ProblemDetails {
        members = new LinkedHashMap<>(members);
    }

    /// A problem without a name.
    public ProblemDetails(HttpResponseStatus status, String detail) {
        this(status, "about:blank", detail, Map.of());
    }

    /// A problem with a name, words joined by dashes.
    public static ProblemDetails withType(HttpResponseStatus status, String name, String detail) {
        return new ProblemDetails(status, TYPE_PREFIX + name, detail, Map.of());
    }

    /// Returns the error for a value that is stored, while the tenant's bytes being sent are at their limit.
    ///
    /// @param leaving what the tenant has on its way out
    static ProblemDetails sendLimitReached(ByteBudget leaving) {
        String limit = "limits.sending";
        String detail = limit + " lets this tenant have " + leaving.limitBytes()
                + " bytes on their way at one time, and " + leaving.usedBytes() + " are; try again";
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("limit", limit);
        members.put("limitBytes", leaving.limitBytes());
        return new ProblemDetails(HttpResponseStatus.SERVICE_UNAVAILABLE, TYPE_PREFIX + "busy", detail, members);
    }

    /// Returns the error for a value on disk that did not arrive in time.
    static ProblemDetails timedOut(HttpResponseStatus status) {
        return withType(status, "late", "it is on disk, and the read timed out or found no room in memory; try again");
    }

    /// After how many seconds the same request may be answered otherwise; 0 for never. What reaches a limit of
    /// bytes is mostly over within parts of a second.
    int retryAfterSeconds() {
        if (status.code() == HttpResponseStatus.TOO_MANY_REQUESTS.code()) {
            return Math.toIntExact(PasswordAuthenticator.FAILURE_WINDOW.toSeconds());
        }
        return status.code() == HttpResponseStatus.SERVICE_UNAVAILABLE.code() || type.equals(TYPE_PREFIX + "late")
                ? 1
                : 0;
    }

    /// Returns a handler that answers with this and discards the request's body.
    public HttpRequestHandler toHandler() {
        return (HttpRequestHandler.BodylessHandler) out -> out.sendProblem(this);
    }

    String toJson() {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("type", type);
        all.put("title", status.reasonPhrase());
        all.put("status", status.code());
        all.put("detail", detail);
        all.putAll(members);
        return Json.text(all);
    }
}
