package io.kvcache.server.image;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/// What is to run in a container: a command of the server, or a probe.
///
/// Beside its own name, `kvcache`, the image answers to those by which LMCache's charts and operator call LMCache's
/// server and probe: `lmcache_server HOST PORT [DEVICE]`, `python3 -m lmcache.v1.server HOST PORT [DEVICE]` and
/// `python3 .../health_probe.py HOST PORT`. As LMCache's server it speaks `lm://` alone, unless `KVCACHE_PROTOCOL` says
/// otherwise. DEVICE is `cpu`, or a directory for values that do not fit the memory, of `KVCACHE_DISK_BYTES`.
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

    /// `lm://` cannot authenticate, so every client that reaches the port reads and writes: using this command allows
    /// it.
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
