package io.kvcache.junit;

import io.kvcache.core.NamespaceStats;
import io.kvcache.server.CacheServer;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A cache server of this JVM, and a client of it. Started again, it listens at the same ports.
///
/// **Threads.** Any.
final class TestServer {

    private static final String LOOPBACK = "127.0.0.1";

    /// Two event loops serve any test, and a machine's memory does not matter, as the settings name the host memory.
    private static final HostResources RESOURCES = new HostResources(Long.MAX_VALUE, 2);

    private final Map<String, String> settings;
    private @Nullable CacheServer server;
    private @Nullable ServerAddresses addresses;
    private @Nullable RemoteKvCache client;

    /// @param settings by path, which come before the defaults of a test server
    TestServer(long hostBytes, Map<String, String> settings) {
        this.settings = new LinkedHashMap<>();
        this.settings.put("listen.port", "0");
        this.settings.put("memory.host_bytes", Long.toString(hostBytes));
        this.settings.put("memory.prefault", "off");
        this.settings.put("transport.listen", LOOPBACK + ":0");
        this.settings.put("transport.shared_memory", "off");
        this.settings.putAll(settings);
    }

    synchronized boolean isRunning() {
        return server != null;
    }

    /// Starts the server. Does nothing while it runs.
    ///
    /// @throws IllegalArgumentException when a setting is wrong
    /// @throws UncheckedIOException when a port cannot be had
    synchronized void start() {
        if (server != null) {
            return;
        }
        try {
            CacheServer started = CacheServer.start(config());
            server = started;
            if (addresses == null) {
                addresses = addressesOf(started);
            }
        } catch (ConfigException wrong) {
            throw new IllegalArgumentException("settings of the test server: " + wrong.getMessage(), wrong);
        } catch (IOException refused) {
            throw new UncheckedIOException("the test server does not start: " + refused.getMessage(), refused);
        }
    }

    private ServerConfig config() throws ConfigException {
        Map<String, String> all = new LinkedHashMap<>(settings);
        ServerAddresses before = addresses;
        if (before != null) {
            all.put("listen.port", Integer.toString(before.port()));
            all.put("transport.listen", before.transport());
        }
        Map<String, ConfigReader.Option> options = new HashMap<>();
        all.forEach((path, text) -> options.put(path, new ConfigReader.Option(path, text)));
        return new ConfigReader(RESOURCES, Map.of()).read(ConfigReader.Source.NONE, options);
    }

    private static ServerAddresses addressesOf(CacheServer server) {
        InetSocketAddress transport = server.remoteAddress();
        if (transport == null) {
            server.close();
            throw new IllegalArgumentException(
                    "transport.listen is off; a test server takes HOST:PORT, as in " + LOOPBACK + ":0");
        }
        return new ServerAddresses(LOOPBACK, server.address().getPort(), transport.getPort());
    }

    synchronized ServerAddresses addresses() {
        ServerAddresses known = addresses;
        if (known == null) {
            throw notStarted();
        }
        return known;
    }

    /// Returns the client, which is connected at the first call and closed with this.
    synchronized RemoteKvCache client() {
        RemoteKvCache connected = client;
        if (connected == null) {
            connected = RemoteKvCache.connect(addresses().transport());
            client = connected;
        }
        return connected;
    }

    /// Drops all blocks and values. Namespaces stay registered.
    synchronized void clear() {
        CacheServer running = server;
        if (running == null) {
            throw notStarted();
        }
        running.cache().stats().namespaces().stream()
                .map(NamespaceStats::namespace)
                .forEach(running.cache()::drop);
    }

    private static IllegalStateException notStarted() {
        return new IllegalStateException("the test server has not been started; it starts before the first test of the"
                + " class that registers the extension");
    }

    /// Stops the server at once, as a crash would, with all that it holds. Does nothing when it does not run.
    synchronized void stop() {
        if (server != null) {
            server.close();
            server = null;
        }
    }

    /// Stops the server and closes the client. A later start takes new ports.
    synchronized void close() {
        if (client != null) {
            client.close();
            client = null;
        }
        stop();
        addresses = null;
    }
}
