package io.kvcache.junit;

import io.kvcache.core.KvCache;
import io.kvcache.transport.client.RemoteKvCache;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/// Starts a cache server in the JVM of a test.
///
/// ```java
/// @RegisterExtension
/// static final KvCacheServerExtension SERVER = KvCacheServerExtension.builder().hostBytes(64L << 20).build();
/// ```
///
/// **Lifetime.** In a static field, or by the annotation [KvCacheServer], one server serves the tests of a class and
/// of its nested classes. In an instance field, each test has a server of its own. The server listens on loopback at
/// free ports, without authentication and without shared memory.
///
/// **State.** The server is emptied before each test, unless [Builder#clearBeforeEach] says otherwise: all blocks and
/// values are dropped. Namespaces stay registered. What `@BeforeAll` has stored is dropped, too. Tests of one server
/// that run at the same time must keep its state.
///
/// **Parameters.** Constructors, tests and lifecycle methods take [ServerAddresses], [RemoteKvCache] and [KvCache].
///
/// **Ownership.** The client of [#cache] belongs to the extension, which closes it with the server.
///
/// **Threads.** Any.
public final class KvCacheServerExtension
        implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback, ParameterResolver {

    /// Default host memory of a test server, 64 MiB.
    public static final long DEFAULT_HOST_BYTES = 64L << 20;

    private @Nullable TestServer server;
    private boolean clearsBeforeEach;

    /// Classes, nested ones too, or tests whose server this is; the last one to end stops it. Guarded by this.
    private int users;

    /// For JUnit, which then reads [KvCacheServer]; tests use [#builder].
    KvCacheServerExtension() {}

    private KvCacheServerExtension(TestServer server, boolean clearsBeforeEach) {
        this.server = server;
        this.clearsBeforeEach = clearsBeforeEach;
    }

    /// Returns a server with all defaults.
    public static KvCacheServerExtension create() {
        return builder().build();
    }

    /// Returns a builder of a server with other settings.
    public static Builder builder() {
        return new Builder();
    }

    /// Returns the server's addresses, which stay the same until the end of its tests.
    ///
    /// @throws IllegalStateException before the server is started
    public ServerAddresses addresses() {
        return server().addresses();
    }

    /// Returns a connected client, the same one for all tests of the server.
    ///
    /// @throws java.io.UncheckedIOException when the server is stopped and the client was not connected before
    public RemoteKvCache cache() {
        return server().client();
    }

    /// Drops all blocks and values.
    public void clear() {
        server().clear();
    }

    /// Stops the server at once, as a crash would. [#start] or the next test starts it again, empty.
    public void stop() {
        server().stop();
    }

    /// Starts the server again at the same ports. Does nothing while it runs.
    public void start() {
        server().start();
    }

    private synchronized TestServer server() {
        if (server == null) {
            throw new IllegalStateException("the test server has not been started");
        }
        return server;
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        enter(context);
    }

    @Override
    public void afterAll(ExtensionContext context) {
        leave();
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        enter(context);
        TestServer running = server();
        if (running.isRunning()) {
            if (clearsBeforeEach) {
                running.clear();
            }
        } else {
            running.start();
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        leave();
    }

    private synchronized void enter(ExtensionContext context) {
        if (server == null) {
            KvCacheServer annotation = annotation(context.getRequiredTestClass());
            Builder builder = builder().hostBytes(annotation.hostBytes()).clearBeforeEach(annotation.clearBeforeEach());
            for (String setting : annotation.settings()) {
                builder.setting(setting);
            }
            server = builder.newServer();
            clearsBeforeEach = annotation.clearBeforeEach();
        }
        users++; // before the start, as JUnit calls the end also when this fails
        if (users == 1) {
            server.start();
        }
    }

    private synchronized void leave() {
        users--;
        if (users == 0 && server != null) {
            server.close();
        }
    }

    /// Looks at the enclosing classes too, as a nested class shares the extension of its outer class.
    private static KvCacheServer annotation(Class<?> testClass) {
        for (Class<?> each = testClass; each != null; each = each.getEnclosingClass()) {
            KvCacheServer found = each.getAnnotation(KvCacheServer.class);
            if (found != null) {
                return found;
            }
        }
        throw new ExtensionConfigurationException(testClass.getName() + " has no annotation @KvCacheServer; add it in"
                + " place of @ExtendWith, or register the extension by its builder");
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == ServerAddresses.class || type == RemoteKvCache.class || type == KvCache.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == ServerAddresses.class ? addresses() : cache();
    }

    /// Settings of a test server. Not safe for several threads.
    public static final class Builder {

        private long hostBytes = DEFAULT_HOST_BYTES;
        private boolean clearsBeforeEach = true;
        private final Map<String, String> settings = new LinkedHashMap<>();

        private Builder() {}

        /// Sets the host memory for blocks and values, 32 MiB and up; default 64 MiB.
        public Builder hostBytes(long bytes) {
            hostBytes = bytes;
            return this;
        }

        /// Sets whether the server is emptied before each test; default true.
        public Builder clearBeforeEach(boolean clear) {
            clearsBeforeEach = clear;
            return this;
        }

        /// Sets a setting of the server by its path, as docs/configuration.md lists them.
        public Builder setting(String path, String value) {
            settings.put(path, value);
            return this;
        }

        private void setting(String text) {
            int equals = text.indexOf('=');
            if (equals < 1) {
                throw new ExtensionConfigurationException(
                        "@KvCacheServer: settings has \"" + text + "\"; allowed: path=value, as in memory.policy=lru");
            }
            setting(text.substring(0, equals), text.substring(equals + 1));
        }

        /// Returns the extension. It starts no server before the first test.
        public KvCacheServerExtension build() {
            return new KvCacheServerExtension(newServer(), clearsBeforeEach);
        }

        private TestServer newServer() {
            return new TestServer(hostBytes, settings);
        }
    }
}
