package io.kvcache.server.config;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A host and a port, as the settings of a cluster write them: `kv-0:7421`, `10.0.0.5:7421`, `[fd00::5]:7421`.
///
/// @param host a name, or an IP address without brackets; not looked up
/// @param port 1 to 65535
public record ClusterAddress(String host, int port) {

    /// The form that settings with a default port take.
    private static final String WITH_DEFAULT_PORT = "it takes HOST or HOST:PORT, as in kv-0:";

    private static final Pattern FORM =
            Pattern.compile("(?:\\[([0-9A-Fa-f:.]+(?:%\\w+)?)]|([A-Za-z0-9_.-]+))(?::(\\d{1,5}))?");
    private static final int MAX_PORT = 65_535;

    public ClusterAddress {
        if (port < 1 || port > MAX_PORT) {
            throw new IllegalArgumentException("the port is " + port + "; it takes 1 to " + MAX_PORT);
        }
    }

    /// @param defaultPort where the text names none
    /// @throws IllegalArgumentException that says what it takes
    static ClusterAddress parse(String text, int defaultPort) {
        return parse(text, Integer.toString(defaultPort), WITH_DEFAULT_PORT + defaultPort);
    }

    /// @throws IllegalArgumentException that says what it takes, also for a text without a port
    static ClusterAddress parse(String text) {
        return parse(text, "0", "it takes HOST:PORT, as in kv-0:7420");
    }

    private static ClusterAddress parse(String text, String defaultPort, String form) {
        Matcher parts = FORM.matcher(text.strip());
        if (!parts.matches()) {
            throw new IllegalArgumentException(form);
        }
        String port = parts.group(3) == null ? defaultPort : parts.group(3);
        String host = parts.group(1) == null ? parts.group(2) : parts.group(1);
        int number = Integer.parseInt(port);
        if (number < 1 || number > MAX_PORT) {
            throw new IllegalArgumentException(form + ", the port from 1 to " + MAX_PORT);
        }
        return new ClusterAddress(host, number);
    }

    /// Looks the host up.
    ///
    /// @throws UnknownHostException when it is not known
    public InetAddress resolve() throws UnknownHostException {
        return InetAddress.getByName(host);
    }

    /// Returns whether the host is known and is this machine alone.
    public boolean isLoopback() {
        try {
            return resolve().isLoopbackAddress();
        } catch (UnknownHostException unknown) {
            return false;
        }
    }

    /// Returns whether the host is known and stands for all addresses of a machine.
    public boolean isWildcard() {
        try {
            return resolve().isAnyLocalAddress();
        } catch (UnknownHostException unknown) {
            return false;
        }
    }

    /// As it is written: an IPv6 address in brackets.
    @Override
    public String toString() {
        return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + port;
    }
}
