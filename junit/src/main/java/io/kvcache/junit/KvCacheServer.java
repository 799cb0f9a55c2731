package io.kvcache.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/// Starts a cache server before the tests of a class and stops it after them.
///
/// ```java
/// @KvCacheServer
/// class MyTest {
///
///     @Test
///     void givenAValue_whenRead_thenItIsThere(ServerAddresses server) {
///         try (var redis = RedisClient.create(server.redis())) { … }
///     }
/// }
/// ```
///
/// Constructors, tests and lifecycle methods take parameters of [ServerAddresses],
/// [io.kvcache.transport.client.RemoteKvCache] and [io.kvcache.core.KvCache]. The class and its nested classes share
/// one server. See [KvCacheServerExtension] for the rest.
@Documented
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(KvCacheServerExtension.class)
public @interface KvCacheServer {

    /// Host memory for blocks and values, 32 MiB and up.
    long hostBytes() default KvCacheServerExtension.DEFAULT_HOST_BYTES;

    /// Whether the server is emptied before each test; otherwise tests see what earlier ones have stored.
    boolean clearBeforeEach() default true;

    /// Settings of the server, each `path=value` as in `memory.policy=lru`.
    String[] settings() default {};
}
