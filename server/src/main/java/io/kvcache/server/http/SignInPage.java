package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.Set;

/// What a browser shows when it may not open the console: why, and how to try again. Its style is the console's,
/// which needs no authentication.
public final class SignInPage {

    /// Scripts, styles and connections of this server alone; nothing inline, and in no frame of another page.
    public static final String CONTENT_POLICY = "default-src 'none'; script-src 'self'; style-src 'self';"
            + " img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none';"
            + " frame-ancestors 'none'";

    private static final String CONSOLE = "/console/";
    private static final Set<String> PAGES = Set.of("/", "/console", CONSOLE);
    private static final Set<String> STYLE_FILES =
            Set.of("console.css", "theme.js", "icon.svg", "lib/bootstrap.min.css");
    private static final String TEXT = read();

    private SignInPage() {}

    private static String read() {
        try (InputStream in = SignInPage.class.getResourceAsStream("sign-in.html")) {
            return new String(Objects.requireNonNull(in).readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /// Returns whether a path is of a file that the page looks as the console by.
    static boolean isStyle(String path) {
        return path.startsWith(CONSOLE) && STYLE_FILES.contains(path.substring(CONSOLE.length()));
    }

    /// Returns whether a person opens the console.
    static boolean isFor(HttpRequest request, String path) {
        return PAGES.contains(path)
                && request.method().equals(HttpMethod.GET)
                && request.headers().get(HttpHeaderNames.ACCEPT, "").contains("text/html");
    }

    /// Returns the handler that answers with the page.
    ///
    /// @param path of the request
    static HttpRequestHandler handler(HttpResponseStatus status, String path, String title, String detail) {
        String text = TEXT.replace("{base}", path.equals(CONSOLE) ? "" : "console/")
                .replace("{title}", title)
                .replace("{detail}", detail);
        return (HttpRequestHandler.BodylessHandler) out ->
                out.sendBytes(status, text.getBytes(StandardCharsets.UTF_8), true, headers -> {
                    headers.set(HttpHeaderNames.CONTENT_TYPE, "text/html; charset=utf-8")
                            .set(HttpHeaderNames.CACHE_CONTROL, "no-store")
                            .set(HttpHeaderNames.CONTENT_SECURITY_POLICY, CONTENT_POLICY);
                    if (status.code() == HttpResponseStatus.UNAUTHORIZED.code()) {
                        headers.set(HttpHeaderNames.WWW_AUTHENTICATE, HttpResponder.CHALLENGE);
                    }
                });
    }
}
