package io.kvcache.server.console;

import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.SignInPage;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;

/// The pages of the console, `/console/`, from the jar, with the libraries that they use.
///
/// The redirects to it are relative, so that they hold below a path prefix of a proxy.
///
/// **Threads.** Any.
public final class ConsoleFiles implements HttpEndpoint {

    private static final String ROOT = "/";
    private static final String CONSOLE = "/console";
    private static final String PREFIX = CONSOLE + "/";
    private static final String INDEX = "index.html";
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9-]+\\.(?:html|css|js|svg)");

    private static final String WEB_JARS = "META-INF/resources/webjars/";

    /// Resources of libraries by their name below `/console/lib/`.
    static final Map<String, String> LIBRARIES = Map.of(
            "bootstrap.min.css", WEB_JARS + "bootstrap/5.3.8/dist/css/bootstrap.min.css",
            "chart.umd.min.js", WEB_JARS + "chart.js/4.5.1/dist/chart.umd.min.js");

    private static final Map<String, String> TYPES = Map.of(
            "html", "text/html; charset=utf-8",
            "css", "text/css; charset=utf-8",
            "js", "text/javascript; charset=utf-8",
            "svg", "image/svg+xml");

    private final ConcurrentMap<String, StaticFile> files = new ConcurrentHashMap<>();

    /// A file, as it is and compressed.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record StaticFile(String type, byte[] plain, byte[] compressed, String tag) {

        static StaticFile of(String name, byte[] content) {
            CRC32C crc = new CRC32C();
            crc.update(content);
            return new StaticFile(
                    TYPES.getOrDefault(name.substring(name.lastIndexOf('.') + 1), "application/octet-stream"),
                    content,
                    compress(content),
                    "W/\"" + Long.toHexString(crc.getValue()) + "-" + Integer.toHexString(content.length) + "\"");
        }

        private static byte[] compress(byte[] content) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
                out.write(content);
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
            return bytes.toByteArray();
        }
    }

    @Override
    public List<String> paths() {
        return List.of(PREFIX);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (!path.equals(ROOT) && !path.equals(CONSOLE) && !path.startsWith(PREFIX)) {
            return null;
        }
        String method = request.method().name();
        if (!method.equals("GET") && !method.equals("HEAD")) {
            return HttpResponder.methodNotAllowed(request, "GET, HEAD");
        }
        if (!path.startsWith(PREFIX)) {
            return (HttpRequestHandler.BodylessHandler) out -> out.sendBytes(
                    HttpResponseStatus.FOUND,
                    new byte[0],
                    false,
                    headers -> headers.set(HttpHeaderNames.LOCATION, "console/"));
        }
        String name = path.length() == PREFIX.length() ? INDEX : path.substring(PREFIX.length());
        Optional<StaticFile> found = find(name);
        return found.isEmpty()
                ? new ProblemDetails(HttpResponseStatus.NOT_FOUND, "the console has no such file").toHandler()
                : (HttpRequestHandler.BodylessHandler) out -> send(found.get(), request, out);
    }

    private Optional<StaticFile> find(String name) {
        StaticFile known = files.get(name);
        if (known != null) {
            return Optional.of(known);
        }
        String resource = resourceOf(name);
        if (resource == null) {
            return Optional.empty();
        }
        try (InputStream in = ConsoleFiles.class.getClassLoader().getResourceAsStream(resource)) {
            if (in == null) {
                return Optional.empty();
            }
            return Optional.of(
                    files.computeIfAbsent(name, _ -> StaticFile.of(name, readAll(in)))); // only names that exist
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private static @Nullable String resourceOf(String name) {
        if (name.startsWith("lib/")) {
            return LIBRARIES.get(name.substring("lib/".length()));
        }
        return NAME.matcher(name).matches()
                ? ConsoleFiles.class.getPackageName().replace('.', '/') + "/" + name
                : null;
    }

    private static byte[] readAll(InputStream in) {
        try {
            return in.readAllBytes();
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private static void send(StaticFile file, HttpRequest request, HttpResponder out) {
        boolean same = file.tag.equals(request.headers().get(HttpHeaderNames.IF_NONE_MATCH));
        boolean zipped =
                request.headers().get(HttpHeaderNames.ACCEPT_ENCODING, "").contains("gzip");
        out.sendBytes(
                same ? HttpResponseStatus.NOT_MODIFIED : HttpResponseStatus.OK,
                zipped ? file.compressed : file.plain,
                !same && request.method().name().equals("GET"),
                headers -> setHeaders(headers, file, zipped));
    }

    private static void setHeaders(HttpHeaders headers, StaticFile file, boolean zipped) {
        headers.set(HttpHeaderNames.CONTENT_TYPE, file.type)
                .set(HttpHeaderNames.ETAG, file.tag)
                .set(HttpHeaderNames.CACHE_CONTROL, HttpHeaderValues.NO_CACHE)
                .set(HttpHeaderNames.VARY, HttpHeaderNames.ACCEPT_ENCODING)
                .set(HttpHeaderNames.CONTENT_SECURITY_POLICY, SignInPage.CONTENT_POLICY)
                .set("x-content-type-options", "nosniff")
                .set("referrer-policy", "no-referrer");
        if (zipped) {
            headers.set(HttpHeaderNames.CONTENT_ENCODING, HttpHeaderValues.GZIP);
        }
    }
}
