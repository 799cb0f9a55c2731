package io.kvcache.transport.aeron;

import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.agrona.DirectBuffer;
import org.jspecify.annotations.Nullable;

/// The address of a cache over Aeron: `aeron:ipc` or `aeron:udp?endpoint=host:port`, with parameters after `?`
/// and `|`. Loads no class of Aeron.
///
/// @param text as it was given
/// @param endpoint host and port of the server, empty for IPC
/// @param folder parent of an embedded driver's directory, or null for a temporary one
/// @param driver directory of a media driver that runs by itself, or null to embed one
/// @param termBytes of each of the three terms of a stream, a power of two
/// @param mtuBytes of a UDP message, a multiple of 32
/// @param dedicated whether there are processors to spin on
public record AeronAddress(
        String text,
        String endpoint,
        @Nullable Path folder,
        @Nullable Path driver,
        int termBytes,
        int mtuBytes,
        boolean dedicated) {

    private static final String IPC = "aeron:ipc";
    private static final String UDP = "aeron:udp";
    private static final List<String> KEYS = List.of("endpoint", "dir", "driver", "term-length", "mtu", "idle");

    /// A connection has two streams of three terms: 6 MiB, so that several fit a container's 64 MiB of
    /// shared memory.
    private static final int TERM_BYTES = 1 << 20;

    /// Default size that a network with large frames carries in one. Aeron's own limit is 65,504.
    private static final int MTU_BYTES = 8 << 10;

    private static final int MAX_MTU_BYTES = 65_504;

    /// Streams of a connection: one in each direction.
    private static final int STREAMS = 2;

    private static final int TERMS = 3;

    /// Bytes of the metadata behind the terms of a stream, rounded up to a page.
    private static final int LOG_META_BYTES = 4096;

    private static final int MAX_PORT = 65_535;

    /// Returns the parsed address. An IPC address without a folder gets the default one of this user for the
    /// server's driver.
    ///
    /// @throws IllegalArgumentException when the text is not an address of Aeron
    public static AeronAddress parse(String text) {
        return parse(text, defaultDirectory());
    }

    /// Returns the parsed address. An IPC address without a folder gets the given one for the server's driver.
    ///
    /// @param usual that folder, or null for none
    /// @throws IllegalArgumentException when the text is not an address of Aeron
    public static AeronAddress parse(String text, @Nullable Path usual) {
        int question = text.indexOf('?');
        String media = question < 0 ? text : text.substring(0, question);
        if (!media.equals(IPC) && !media.equals(UDP)) {
            throw invalid(
                    "address",
                    text,
                    "aeron:ipc, or aeron:udp?endpoint=HOST:PORT; parameters of Aeron follow after ? and |");
        }
        Map<String, String> given = question < 0 ? Map.of() : parameters(text.substring(question + 1));
        boolean ipc = media.equals(IPC);
        String driver = given.get("driver");
        String folder = given.get("dir");
        if (driver != null && folder != null) {
            throw invalid("address", text, "dir (of an embedded driver) or driver (one that runs), not both");
        }
        return new AeronAddress(
                text,
                endpoint(text, ipc, given.get("endpoint")),
                folder == null ? (ipc && driver == null ? usual : null) : Path.of(folder),
                driver == null ? null : Path.of(driver),
                termBytes(given.get("term-length")),
                mtuBytes(given.get("mtu")),
                dedicated(given.get("idle")));
    }

    private static Map<String, String> parameters(String text) {
        Map<String, String> given = new HashMap<>();
        for (String each : text.split("\\|", -1)) {
            int equal = each.indexOf('=');
            String key = equal < 0 ? each : each.substring(0, equal);
            if (equal < 0 || !KEYS.contains(key) || given.put(key, each.substring(equal + 1)) != null) {
                throw invalid("parameter", each, "each of " + String.join(", ", KEYS) + " once, as key=value");
            }
        }
        return given;
    }

    private static String endpoint(String text, boolean ipc, @Nullable String endpoint) {
        if (ipc != (endpoint == null)) {
            throw invalid("address", text, "an endpoint for aeron:udp, and for no other");
        }
        if (endpoint != null && !isHostPort(endpoint)) {
            throw invalid("endpoint", endpoint, "host:port");
        }
        return endpoint == null ? "" : endpoint;
    }

    private static boolean isHostPort(String endpoint) {
        return endpoint.matches("(\\[[0-9a-fA-F:.%]+]|[\\w.-]+):\\d{1,5}")
                && number(endpoint.substring(endpoint.lastIndexOf(':') + 1)) <= MAX_PORT;
    }

    private static int termBytes(@Nullable String text) {
        int bytes = text == null ? TERM_BYTES : number(text);
        if (bytes < 1 << 16 || bytes > 1 << 30 || Integer.bitCount(bytes) != 1) {
            throw invalid("term-length", String.valueOf(text), "powers of two from 65536 to 1073741824");
        }
        return bytes;
    }

    private static int mtuBytes(@Nullable String text) {
        int bytes = text == null ? MTU_BYTES : number(text);
        if (bytes < 1408 || bytes > MAX_MTU_BYTES || bytes % 32 != 0) {
            throw invalid("mtu", String.valueOf(text), "multiples of 32 from 1408 to " + MAX_MTU_BYTES);
        }
        return bytes;
    }

    private static boolean dedicated(@Nullable String text) {
        if (text != null && !text.equals("shared") && !text.equals("dedicated")) {
            throw invalid("idle", text, "shared or dedicated");
        }
        return "dedicated".equals(text);
    }

    private static int number(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException none) {
            return -1;
        }
    }

    private static IllegalArgumentException invalid(String what, String value, String allowed) {
        return new IllegalArgumentException("%s = \"%s\"; allowed: %s".formatted(what, value, allowed));
    }

    /// Returns the default folder of a server of this user.
    private static Path defaultDirectory() {
        return defaultDirectory("");
    }

    /// Returns the folder of a server of this user with a distinguishing suffix, such as a port.
    ///
    /// @param suffix of the folder's name
    public static Path defaultDirectory(String suffix) {
        Path shm = Path.of("/dev/shm");
        Path base = Files.isWritable(shm) ? shm : Path.of(System.getProperty("java.io.tmpdir"));
        return base.resolve("kvcache-aeron-" + System.getProperty("user.name") + suffix);
    }

    /// Returns whether the address is for processes on one host.
    public boolean isIpc() {
        return endpoint.isEmpty();
    }

    /// Returns the resolved host and port of a server over UDP. Unresolved if the host is unknown.
    public InetSocketAddress socketAddress() {
        int colon = endpoint.lastIndexOf(':');
        String host = endpoint.substring(0, colon);
        String bare = host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
        return new InetSocketAddress(bare, Integer.parseInt(endpoint.substring(colon + 1)));
    }

    /// Returns the bytes that a connection takes in the file system of the driver's folder, on each side with a
    /// driver.
    long connectionBytes() {
        return STREAMS * (TERMS * (long) termBytes + LOG_META_BYTES);
    }

    /// Returns the channel in Aeron's own syntax.
    ///
    /// @param at host and port; empty for IPC
    String channel(String at) {
        String sizes = "term-length=%s|mtu=%s".formatted(termBytes, messageBytes());
        return isIpc() ? IPC + "?" + sizes : UDP + "?endpoint=" + at + "|" + sizes;
    }

    /// Returns the most bytes of one claim, with its header. Aeron allows an eighth of a term.
    int messageBytes() {
        return Math.min(isIpc() ? MAX_MTU_BYTES : mtuBytes, termBytes / 8);
    }

    /// Returns the address that a client connects to.
    ///
    /// @param at host and port that the server got; empty for IPC
    String clientAddress(String at) {
        if (!isIpc()) {
            return UDP + "?endpoint=" + at;
        }
        return IPC + (driver != null ? "?driver=" + driver : "?dir=" + folder);
    }

    /// Checks for the flag without which Aeron fails at its first use, with an error that names no remedy.
    ///
    /// @throws IllegalStateException when this JVM was started without it
    void requireAgrona() {
        Module agrona = DirectBuffer.class.getModule();
        if (!Object.class.getModule().isExported("jdk.internal.misc", agrona)) {
            throw new IllegalStateException(
                    text + " needs a JVM that is started with --add-exports java.base/jdk.internal.misc="
                            + (agrona.isNamed() ? agrona.getName() : "ALL-UNNAMED"));
        }
    }
}
