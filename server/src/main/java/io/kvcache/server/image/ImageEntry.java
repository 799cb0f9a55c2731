package io.kvcache.server.image;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.kvcache.server.config.HostResources;
import io.kvcache.server.image.ImageEntry.ImageCommand.Connect;
import io.kvcache.server.image.ImageEntry.ImageCommand.Health;
import io.kvcache.server.image.ImageEntry.ImageCommand.Run;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// The entry point of the image, in place of a shell script: it becomes the JVM that runs the command.
///
/// The kernel starts it by the first line of a file, which names the JVM and its arguments, so that the name of that
/// file is the first argument here. This JVM is small, finds out what the container's memory allows, and is replaced
/// by `execv`: the process keeps its id, and gets the signals.
public final class ImageEntry {

    private static final int TIMEOUT_MILLIS = (int) TimeUnit.SECONDS.toMillis(5);
    private static final int FAILED = 1;
    private static final int MISUSED = 2;

    private ImageEntry() {}

    /// Runs a command, and exits with its status, or 2 for what cannot be run.
    ///
    /// @param arguments the path by which the entry was called, then those of the caller
    public static void main(String... arguments) {
        List<String> all = List.of(arguments);
        String name = Path.of(all.getFirst()).getFileName().toString();
        try {
            System.exit(
                    switch (ImageCommand.of(name, all.subList(1, all.size()), System.getenv())) {
                        case Run run -> become(run.arguments());
                        case Connect connect -> connect(connect);
                        case Health health -> ask(health);
                    });
        } catch (IllegalArgumentException misused) {
            System.err.println("kvcache: " + misused.getMessage());
            System.exit(MISUSED);
        }
    }

    /// Returns only when that fails.
    private static int become(List<String> arguments) {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String jar = System.getProperty("java.class.path");
        List<String> command = new ArrayList<>(List.of(java));
        command.addAll(JvmFlags.of(arguments.getFirst(), HostResources.detect(), System.getenv()));
        Path rehearsed = Path.of(jar).resolveSibling("kvcache.aot");
        if (Files.exists(rehearsed)) {
            command.add("-XX:AOTCache=" + rehearsed);
            command.add("-Xlog:aot*=off");
        }
        String more = System.getenv().getOrDefault("KVCACHE_CLASSPATH", "");
        command.addAll(List.of("-cp", more.isEmpty() ? jar : jar + ":" + more, "io.kvcache.server.cli.Kvcache"));
        command.addAll(arguments);
        long failed = execute(java, command);
        System.err.println("kvcache: cannot run " + java + ": error " + -failed);
        return FAILED;
    }

    private static long execute(String program, List<String> command) {
        try (Arena arena = Arena.ofConfined()) {
            AddressLayout pointer = ValueLayout.ADDRESS;
            MemorySegment array = arena.allocate(pointer, command.size() + 1L); // a null pointer ends it
            for (int i = 0; i < command.size(); i++) {
                array.setAtIndex(pointer, i, arena.allocateFrom(command.get(i)));
            }
            return Libc.system().callWithString(LibcFunction.EXECV, program, array);
        }
    }

    /// LMCache's probe. The server does not count a connection that closes at once as an error.
    private static int connect(Connect probe) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(probe.host(), probe.port()), TIMEOUT_MILLIS);
            return 0;
        } catch (IOException none) {
            System.err.println("kvcache: no server listens at " + probe.host() + ":" + probe.port());
            return MISUSED; // as a file that LMCache's image has would
        }
    }

    private static int ask(Health health) {
        for (int port : health.ports()) {
            try {
                String status = status(port);
                System.out.println("port " + port + ": " + status);
                return status.contains(" 200 ") ? 0 : FAILED;
            } catch (ConnectException none) {
                // perhaps the next one
            } catch (IOException silent) {
                System.err.println("kvcache: /health/live at port " + port + ": " + silent.getMessage());
                return FAILED;
            }
        }
        String ports = health.ports().stream().map(String::valueOf).collect(Collectors.joining(" or "));
        System.err.println("kvcache: no server listens at port " + ports + "; health PORT asks another one");
        return FAILED;
    }

    private static String status(int port) throws IOException {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), TIMEOUT_MILLIS);
            socket.setSoTimeout(TIMEOUT_MILLIS);
            String request = "GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            socket.getOutputStream().write(request.getBytes(US_ASCII));
            InputStream in = socket.getInputStream();
            String answer = new String(in.readNBytes(4096), US_ASCII);
            return answer.lines().findFirst().orElse("closed without an answer");
        }
    }

    /// The flags of the JVM that runs a command, as `.mvn/java-flags.sh` has them for checkouts.
    ///
    /// Host memory is mapped, not heap: 2 GiB are for metadata, as much again for the buffers of the network; in a
    /// container
    /// of less than 8 GiB, a quarter of it each.
    static final class JvmFlags {

        private static final long MEBIBYTE = 1L << 20;
        private static final long MOST_MEBIBYTES = 2048;
        private static final long LEAST_MEBIBYTES = 128;

        private JvmFlags() {}

        /// @param command `serve` or another one
        /// @param environment of which `KVCACHE_JAVA_OPTS` is added
        static List<String> of(String command, HostResources host, Map<String, String> environment) {
            long mebibytes = Math.clamp(host.memoryBytes() / 4 / MEBIBYTE, LEAST_MEBIBYTES, MOST_MEBIBYTES);
            List<String> flags = new ArrayList<>(List.of(
                    "--enable-native-access=ALL-UNNAMED",
                    "--sun-misc-unsafe-memory-access=allow",
                    "-Xmx" + mebibytes + "m",
                    "-XX:MaxDirectMemorySize=" + mebibytes + "m",
                    "-XX:+UseCompactObjectHeaders",
                    "--add-exports",
                    "java.base/jdk.internal.misc=ALL-UNNAMED"));
            if (command.equals("serve")) {
                flags.add("-XX:+ExitOnOutOfMemoryError");
            }
            String own = environment.getOrDefault("KVCACHE_JAVA_OPTS", "").strip();
            if (!own.isEmpty()) {
                flags.addAll(List.of(own.split("\\s+")));
            }
            return flags;
        }
    }

    /// What is to run in a container: a command of the server, or a probe.
    ///
    /// Beside its own name, `kvcache`, the image answers to those by which LMCache's charts and operator call
    /// LMCache's server and probe: `lmcache_server HOST PORT [DEVICE]`, `python3 -m lmcache.v1.server HOST PORT
    /// [DEVICE]` and `python3 .../health_probe.py HOST PORT`. As LMCache's server it speaks `lm://` alone, unless
    /// `KVCACHE_PROTOCOL` says otherwise. DEVICE is `cpu`, or a directory for values that do not fit the memory,
    /// of `KVCACHE_DISK_BYTES`.
    sealed interface ImageCommand {

        /// A command of the server.
        ///
        /// @param arguments the command's name first
        record Run(List<String> arguments) implements ImageCommand {}

        /// Asks whether a server listens.
        ///
        /// @param port that takes connections
        record Connect(String host, int port) implements ImageCommand {}

        /// Asks a page of the server in this container.
        ///
        /// @param ports that may serve HTTP; the first one that listens is asked
        record Health(List<Integer> ports) implements ImageCommand {}

        /// Names by which LMCache's server is called.
        List<String> LMCACHE_SERVERS = List.of("lmcache_server", "lmcache_experimental_server");

        /// The pages of the image's own settings, and the server's default port.
        List<Integer> HEALTH_PORTS = List.of(9090, 7379);

        Pattern LMCACHE_MODULE = Pattern.compile("lmcache\\.(v1\\.)?server");
        int MAX_PORT = 65_535;

        /// Reads what a container is to run.
        ///
        /// @param name by which the image's entry was called
        /// @param environment of the container
        /// @throws IllegalArgumentException for what cannot be run; the message says what can
        static ImageCommand of(String name, List<String> arguments, Map<String, String> environment) {
            if (!name.equals("kvcache")) {
                List<String> named = new ArrayList<>(List.of(name));
                named.addAll(arguments);
                return of(named, environment);
            }
            return arguments.isEmpty() ? new Run(List.of("help")) : of(arguments, environment);
        }

        private static ImageCommand of(List<String> all, Map<String, String> environment) {
            String command = all.getFirst();
            List<String> rest = all.subList(1, all.size());
            if (LMCACHE_SERVERS.contains(command)) {
                return lmcacheServer(rest, environment);
            }
            return switch (command) {
                case "python", "python3" -> python(rest, environment);
                case "health" -> health(rest);
                default -> new Run(List.copyOf(all));
            };
        }

        private static ImageCommand python(List<String> arguments, Map<String, String> environment) {
            if (!arguments.isEmpty() && arguments.getFirst().endsWith("/health_probe.py")) {
                if (arguments.size() != 3) {
                    throw new IllegalArgumentException("health_probe.py takes HOST PORT");
                }
                return new Connect(arguments.get(1), port(arguments.get(2)));
            }
            if (arguments.size() < 2
                    || !arguments.getFirst().equals("-m")
                    || !LMCACHE_MODULE.matcher(arguments.get(1)).matches()) {
                throw new IllegalArgumentException("there is no Python here, only lmcache_server");
            }
            return lmcacheServer(arguments.subList(2, arguments.size()), environment);
        }

        /// `lm://` cannot authenticate, so every client that reaches the port reads and writes: using this
        /// command allows it.
        private static ImageCommand lmcacheServer(List<String> arguments, Map<String, String> environment) {
            if (arguments.size() < 2 || arguments.size() > 3) {
                throw new IllegalArgumentException("lmcache_server takes HOST PORT [DEVICE]");
            }
            List<String> serve = new ArrayList<>(List.of(
                    "serve",
                    "--address",
                    arguments.get(0),
                    "--port",
                    arguments.get(1),
                    "--set",
                    "listen.without_auth=true",
                    "--set",
                    "listen.protocol=" + environment.getOrDefault("KVCACHE_PROTOCOL", "lm")));
            String device = arguments.size() == 3 ? arguments.get(2) : "cpu";
            if (device.startsWith("/")) {
                serve.add("--disk");
                serve.add(device + ":" + environment.getOrDefault("KVCACHE_DISK_BYTES", "64GiB"));
            } else if (!device.equals("cpu")) {
                throw new IllegalArgumentException(
                        "lmcache_server takes cpu or an absolute directory as DEVICE, not '" + device + "'");
            }
            return new Run(serve);
        }

        private static ImageCommand health(List<String> arguments) {
            if (arguments.size() > 1) {
                throw new IllegalArgumentException("health takes a PORT or nothing");
            }
            return new Health(arguments.isEmpty() ? HEALTH_PORTS : List.of(port(arguments.getFirst())));
        }

        private static int port(String text) {
            try {
                int port = Integer.parseInt(text);
                if (port >= 1 && port <= MAX_PORT) {
                    return port;
                }
            } catch (NumberFormatException notANumber) {
                // said below
            }
            throw new IllegalArgumentException("port '" + text + "' is not one; allowed: 1 to " + MAX_PORT);
        }
    }
}
