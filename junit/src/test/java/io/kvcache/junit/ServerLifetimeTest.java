package io.kvcache.junit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.testkit.engine.EventConditions.event;
import static org.junit.platform.testkit.engine.EventConditions.finishedWithFailure;
import static org.junit.platform.testkit.engine.TestExecutionResultConditions.message;

import java.io.IOException;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.platform.testkit.engine.EngineExecutionResults;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.Event;
import redis.clients.jedis.RedisClient;

/// Runs the classes of tests below as JUnit runs those of a user.
final class ServerLifetimeTest {

    /// What the tests below saw, in their order.
    private static final List<String> SEEN = new ArrayList<>();

    private static final List<ServerAddresses> SERVERS = new ArrayList<>();

    @BeforeEach
    void forget() {
        SEEN.clear();
        SERVERS.clear();
    }

    private static EngineExecutionResults run(Class<?> tests) {
        return EngineTestKit.engine("junit-jupiter")
                .selectors(selectClass(tests))
                .configurationParameter("junit.jupiter.conditions.deactivate", "*")
                .execute();
    }

    private static void readAndWrite(ServerAddresses server) {
        SERVERS.add(server);
        try (RedisClient redis = RedisClient.create(server.redis())) {
            SEEN.add(String.valueOf(redis.get("key")));
            redis.set("key", "value");
        }
    }

    @Test
    void givenAnAnnotation_whenTestsRun_thenEachSeesAnEmptyServerThatEndsWithTheClass() {
        run(AnnotatedSample.class)
                .testEvents()
                .assertStatistics(events -> events.succeeded(3).failed(0));
        assertThat(SEEN).containsExactly("null", "null", "null");
        assertThat(SERVERS.stream().distinct())
                .as("one server, also for the nested class")
                .hasSize(1);
        ServerAddresses ended = SERVERS.getFirst();
        assertThatThrownBy(() -> new Socket(ended.host(), ended.port()).close()).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> new Socket(ended.host(), ended.transportPort()).close())
                .isInstanceOf(IOException.class);
    }

    @Test
    void givenStateIsKept_whenTestsRun_thenTheSecondSeesWhatTheFirstStored() {
        run(KeepingSample.class).testEvents().assertStatistics(events -> events.succeeded(2));
        assertThat(SEEN).containsExactly("null", "value");
    }

    @Test
    void givenAnInstanceField_whenTestsRun_thenEachHasAServerOfItsOwn() {
        run(InstanceSample.class).testEvents().assertStatistics(events -> events.succeeded(2));
        assertThat(SEEN).containsExactly("null", "null");
    }

    @Test
    void givenAStoppedServer_whenTheNextTestBegins_thenItRunsAgain() {
        run(StoppingSample.class).testEvents().assertStatistics(events -> events.succeeded(2));
        assertThat(SEEN).containsExactly("null", "null");
        assertThat(SERVERS.stream().distinct()).hasSize(1);
    }

    @Test
    void givenAWrongSetting_whenTestsRun_thenTheErrorNamesItAndTheAllowedValues() {
        assertThat(failures(run(WrongSettingSample.class)))
                .haveAtLeastOne(event(finishedWithFailure(message(text ->
                        text.contains("memory.policy") && text.contains("guess") && text.contains("importance")))));
        assertThat(failures(run(WrongFormSample.class)))
                .haveAtLeastOne(event(
                        finishedWithFailure(message(text -> text.contains("\"memory.policy\"; allowed: path=value")))));
        assertThat(failures(run(SmallSample.class)))
                .haveAtLeastOne(event(finishedWithFailure(
                        message(text -> text.contains("memory.host_bytes is 1") && text.contains("32 MiB")))));
    }

    private static List<Event> failures(EngineExecutionResults results) {
        return results.containerEvents().failed().list();
    }

    @KvCacheServer
    static class AnnotatedSample {

        private final ServerAddresses server;

        AnnotatedSample(ServerAddresses server) {
            this.server = server;
        }

        @Test
        void first() {
            readAndWrite(server);
        }

        @Test
        void second() {
            readAndWrite(server);
        }

        @Nested
        class Inner {

            @Test
            void third() {
                readAndWrite(server);
            }
        }
    }

    @KvCacheServer(clearBeforeEach = false, hostBytes = 32L << 20, settings = "memory.policy=lru")
    @TestMethodOrder(MethodOrderer.MethodName.class)
    static class KeepingSample {

        @Test
        void first(ServerAddresses server) {
            readAndWrite(server);
        }

        @Test
        void second(ServerAddresses server) {
            readAndWrite(server);
        }
    }

    static class InstanceSample {

        @RegisterExtension
        final KvCacheServerExtension own =
                KvCacheServerExtension.builder().clearBeforeEach(false).build();

        @Test
        void first() {
            readAndWrite(own.addresses());
        }

        @Test
        void second() {
            readAndWrite(own.addresses());
        }
    }

    static class StoppingSample {

        @RegisterExtension
        static final KvCacheServerExtension SERVER = KvCacheServerExtension.create();

        @Test
        void first() {
            readAndWrite(SERVER.addresses());
            SERVER.stop();
        }

        @Test
        void second() {
            readAndWrite(SERVER.addresses());
            SERVER.stop();
        }
    }

    @KvCacheServer(settings = "memory.policy=guess")
    static class WrongSettingSample {
        @Test
        void never() {}
    }

    @KvCacheServer(settings = "memory.policy")
    static class WrongFormSample {
        @Test
        void never() {}
    }

    @KvCacheServer(hostBytes = 1)
    static class SmallSample {
        @Test
        void never() {}
    }
}
