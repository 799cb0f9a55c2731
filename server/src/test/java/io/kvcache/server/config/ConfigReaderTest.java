package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.EventsConfig.EventEncoding;
import io.kvcache.server.config.EventsConfig.EventHashes;
import io.kvcache.server.config.EventsConfig.EventMedia;
import io.kvcache.server.config.ServerConfig.ExistsPinConfig;
import io.kvcache.server.config.ServerConfig.LogConfig;
import io.kvcache.server.config.ServerConfig.NetworkConfig;
import io.kvcache.server.log.LogLineFormatter.LogFormat;
import io.kvcache.server.log.LogLineFormatter.LogLevel;
import io.kvcache.server.net.NettyTransport.TransportKind;
import io.kvcache.tiers.options.OnIncompatible;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ConfigReaderTest {

    private static final HostResources MACHINE = new HostResources(16L << 30, 4);

    private static ServerConfig read(String yaml, Map<String, String> environment) throws ConfigException {
        return new ConfigReader(MACHINE, environment).read(new ConfigReader.Source("kvcache.yaml", yaml), Map.of());
    }

    private static List<String> problems(String yaml, Map<String, String> environment) {
        return catchThrowableOfType(ConfigException.class, () -> read(yaml, environment))
                .problems();
    }

    @Test
    void givenSectionsWithNothingInThem_whenRead_thenDefaultsCount() throws ConfigException {
        assertThat(read("memory:\n#  host_bytes: 1GiB\ndisks:\nlisteners: ~\ntenants: null\n", Map.of()))
                .isEqualTo(ServerConfig.defaults(MACHINE));
    }

    @Test
    void givenAValueWhereASectionBelongs_whenRead_thenItsSettingsAreNamed() {
        assertThat(problems("log: json\n", Map.of()))
                .containsExactly("kvcache.yaml:1: log takes settings below it: log.format, log.level, log.slow");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "disks: /data/x | disks is one value; it takes a list of DIR:SIZE or of settings, as in disks: [/mnt",
                "disks: { directory: /x, bytes: 1GiB } | disks is settings by name; it takes a list of DIR:SIZE",
                "listeners: 7379 | listeners is one value; it takes a list of settings, as in listeners: [{ name",
                "tenants: { blue: { quota: 1GiB } } | tenants is settings by name; it takes a list of settings, as in",
                "domains: research | domains is one value; it takes a list of settings, as in domains: [{ name",
                "memory: [1GiB] | memory is a list; it takes settings by name: memory.client_staging, memory.host",
                "admission: [always] | admission takes one value",
                "disks: [/data/x] | disks.0 is '/data/x'; it takes DIR:SIZE, for example /mnt/nvme0/kvcache:1TiB",
            })
    void givenAnotherForm_whenRead_thenTheRightOneIsShown(String yaml, String problem) {
        assertThat(problems(yaml + "\n", Map.of())).singleElement().asString().startsWith("kvcache.yaml:1: " + problem);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "listeners: [{ port: 7400 }, { port: 7401 }, { port: 7400 }] |"
                        + " listeners.2.port is 7400 at 127.0.0.1, and listeners.0.port is 7400 at 127.0.0.1; each",
                "{ allow_unauthenticated: [all], listeners: [{ port: 7400 },"
                        + " { name: all, address: 0.0.0.0, port: 7400, protocols: [http] }] } |"
                        + " listeners.1.port is 7400 at 0.0.0.0, and listeners.0.port is 7400 at 127.0.0.1; each",
                "transport: { listen: '127.0.0.1:7379' } |"
                        + " transport.listen is 127.0.0.1:7379, and listen.port is 7379 at 127.0.0.1; each takes a port",
                "events: { publish: 'tcp://127.0.0.1:7379' } |"
                        + " events.publish is tcp://127.0.0.1:7379, and listen.port is 7379 at 127.0.0.1; each takes",
                "events: { publish: 'tcp://127.0.0.1:1', replay: 'tcp://127.0.0.1:1' } |"
                        + " events.replay is tcp://127.0.0.1:1, as events.publish is; each takes an endpoint of its own",
            })
    void givenOnePortForTwo_whenRead_thenBothSettingsAreNamed(String yaml, String problem) {
        assertThat(problems(yaml, Map.of())).anySatisfy(each -> assertThat(each).contains(problem));
    }

    @Test
    void givenLogAndShutdown_whenRead_thenTheyAreAsSetAndTheirRangesAreNamed() throws ConfigException {
        ServerConfig config = read(
                "log: { format: json, level: warning, slow: 250ms }\nshutdown: { delay: 5s, drain: 20s }\n", Map.of());
        assertThat(config.log()).isEqualTo(new LogConfig(LogFormat.JSON, LogLevel.WARNING, Duration.ofMillis(250)));
        assertThat(config.shutdown().delay().plus(config.shutdown().drain())).isEqualTo(Duration.ofSeconds(25));

        String wrong = "log: { level: loud, format: json }\nshutdown: { delay: 11m }\n";
        assertThat(problems(wrong, Map.of()))
                .containsExactly(
                        "kvcache.yaml:1: log.level is 'loud'; it takes debug, info, warning, error",
                        "kvcache.yaml:2: shutdown.delay is 660s; it takes 0s to 600s");
        assertThat(catchThrowableOfType(ConfigException.class, () -> read(wrong, Map.of()))
                        .log()
                        .format())
                .isEqualTo(LogFormat.JSON);
        assertThat(problems("log: { slow: 2h }\n", Map.of()))
                .containsExactly(
                        "kvcache.yaml:1: log.slow is 7200s; it takes 0 for no log of slow requests, or 1ms to 1h");
    }

    @Test
    void givenOnePortAtTwoAddressesOrAnyPort_whenRead_thenTheyAreGood() throws ConfigException {
        assertThat(read("listeners: [{ port: 7400 }, { address: 127.0.0.2, port: 7400 }]\n", Map.of())
                        .access()
                        .listeners())
                .hasSize(2);
        assertThat(read("listeners: [{ port: 0 }, { port: 0 }]\n", Map.of())
                        .access()
                        .listeners())
                .hasSize(2);
    }

    @Test
    void givenAListenerAtTheUsualPortOfTheTransport_whenSettled_thenThatIsOff() throws ConfigException {
        ServerConfig config = read("listen: { port: 7420 }\n", Map.of());
        assertThat(config.withAutoResolved(port -> true).transport().isTcpEnabled())
                .isFalse();
    }

    @Test
    void givenAnUnknownSettingOfASection_whenRead_thenThatSectionsAreNamed() {
        assertThat(problems("log: { whereabouts: here }\n", Map.of()))
                .containsExactly(
                        "kvcache.yaml:1: there is no setting log.whereabouts; there are log.format, log.level, log.slow");
    }

    @Test
    void givenAListThatNobodyKnows_whenRead_thenItIsToldOnce() {
        assertThat(problems("hostnames: [a, b, c, [d, e]]\n", Map.of()))
                .singleElement()
                .asString()
                .startsWith("kvcache.yaml:1: there is no setting hostnames; there are admission, ")
                .contains(", disks, ", ", listeners, ", ", memory, ", ", tenants, ")
                .doesNotContain("memory.host_bytes");
    }

    @Test
    void givenAnAliasOfWhatItIsIn_whenRead_thenItEnds() {
        assertThat(problems("memory: &all [*all]\n", Map.of())).isNotEmpty();
    }

    @Test
    void givenAVariableWithOneUnderscore_whenRead_thenTheNameIsSaid() {
        assertThat(problems("", Map.of("KVCACHE_MEMORY__HOST_BYTES", "1GiB", "KVCACHE_PORT", "tcp://10.0.0.1:7379")))
                .containsExactly("KVCACHE_MEMORY__HOST_BYTES sets nothing; is it KVCACHE__MEMORY__HOST_BYTES?");
    }

    @ParameterizedTest
    @CsvSource({
        "KVCACHE_LISTEN_PORT, KVCACHE__LISTEN__PORT",
        "KVCACHE_LISTEN_PRT, KVCACHE__LISTEN__PORT",
        "KVCACHE_MEMORY_HOST_BYTS, KVCACHE__MEMORY__HOST_BYTES",
        "KVCACHE_GPU, KVCACHE__GPU__0",
        "KVCACHE_JAVA_OPT, KVCACHE_JAVA_OPTS"
    })
    void givenAMisspeltVariable_whenRead_thenTheNameIsSaid(String typed, String meant) {
        assertThat(problems("", Map.of(typed, "1"))).containsExactly(typed + " sets nothing; is it " + meant + "?");
    }

    @Test
    void givenVariablesOfOthers_whenRead_thenTheyAreLeftAlone() throws ConfigException {
        Map<String, String> environment = Map.of(
                "KVCACHE_PORT_7379_TCP_ADDR", "10.0.0.1",
                "KVCACHE_SERVICE_PORT", "7379",
                "KVCACHE_HOME", "/srv",
                "KVCACHE_JAVA_OPTS", "-Xmx1g");
        assertThat(read("", environment).access().listeners().getFirst().port()).isEqualTo(7379);
    }

    @Test
    void givenNothing_whenRead_thenDefaultsFitTheMachine() throws ConfigException {
        ServerConfig config = read("", Map.of());

        assertThat(config).isEqualTo(ServerConfig.defaults(MACHINE));
        assertThat(config.memory().hostBytes()).isEqualTo(2L << 30);
        assertThat(config.network().loops()).isEqualTo(4);
        assertThat(config.access()
                        .listeners()
                        .getFirst()
                        .socketAddress()
                        .getAddress()
                        .isLoopbackAddress())
                .isTrue();
    }

    @Test
    void givenAFile_whenRead_thenItsValuesCount() throws ConfigException {
        ServerConfig config = read("""
                listen:
                  port: 6400   # a comment
                memory:
                  host_bytes: 1.5GiB
                  policy: importance
                network: { transport: nio, loops: 2 }
                limits:
                  idle: 5m
                promise: { time: 500ms, percent: 10 }
                shutdown:
                  drain: 3s
                """, Map.of());

        assertThat(config.access().listeners().getFirst().port()).isEqualTo(6400);
        assertThat(config.memory().hostBytes()).isEqualTo(3L << 29);
        assertThat(config.memory().policy()).isEqualTo(PolicyKind.IMPORTANCE);
        assertThat(config.network()).isEqualTo(new NetworkConfig(TransportKind.NIO, 2));
        assertThat(config.limits().idleTimeout()).isEqualTo(Duration.ofMinutes(5));
        assertThat(config.existsPin()).isEqualTo(new ExistsPinConfig(Duration.ofMillis(500), 10));
        assertThat(config.shutdown().drain()).isEqualTo(Duration.ofSeconds(3));
    }

    @Test
    void givenAPolicyOfAJarOnTheClassPath_whenRead_thenItIsTaken() throws ConfigException {
        ServerConfig config = read("memory: { policy: two-queues }\n", Map.of());

        assertThat(config.memory().policy()).isInstanceOf(TwoQueuePolicy.class);
    }

    @Test
    void givenAnUnknownPolicy_whenRead_thenTheKnownOnesAreListed() {
        assertThat(problems("memory: { policy: random }\n", Map.of()))
                .singleElement()
                .asString()
                .contains("memory.policy", "lru, ", "two-queues", "importance");
    }

    @Test
    void givenFileEnvironmentAndOption_whenRead_thenTheLaterGoesBeforeTheEarlier() throws ConfigException {
        ConfigReader.Source file = new ConfigReader.Source("f", "listen: {port: 1}\nnetwork: {loops: 1}\n");
        Map<String, String> environment = Map.of("KVCACHE__LISTEN__PORT", "2", "KVCACHE__LIMITS__CONNECTIONS", "5");

        ServerConfig config = new ConfigReader(MACHINE, environment)
                .read(file, Map.of("listen.port", new ConfigReader.Option("--port", "3")));

        assertThat(config.access().listeners().getFirst().port()).isEqualTo(3);
        assertThat(config.limits().connections()).isEqualTo(5);
        assertThat(config.network().loops()).isEqualTo(1);
    }

    @Test
    void givenWhatKubernetesSetsForAServiceOfThisName_whenRead_thenItIsNoSetting() throws ConfigException {
        Map<String, String> environment = Map.of(
                "KVCACHE_PORT", "tcp://10.0.0.1:80",
                "KVCACHE_SERVICE_HOST", "10.0.0.1",
                "KVCACHE_PORT_80_TCP", "tcp://10.0.0.1:80");

        assertThat(read("", environment)).isEqualTo(ServerConfig.defaults(MACHINE));
    }

    @ParameterizedTest
    @CsvSource({
        "KVCACHE__LISTEN__PORT, listen.port, 0 to 65535",
        "KVCACHE__NETWORK__LOOPS, network.loops, 1 to 1024",
        "KVCACHE__LIMITS__CONNECTIONS, limits.connections, 1 to 1000000",
        "KVCACHE__PROMISE__PERCENT, promise.percent, 0 to 90",
        "KVCACHE__EVENTS__REPLAY_BATCHES, events.replay_batches, 1 to 1000000",
        "KVCACHE__TRANSPORT__CONNECTIONS, transport.connections, 1 to 65536",
        "KVCACHE__TENANTS__0__WEIGHT, tenants.0.weight, 1 to 1000"
    })
    void givenNoNumber_whenANumberIsWanted_thenItsRangeIsSaid(String variable, String setting, String range) {
        assertThat(problems("", Map.of(variable, "many")))
                .contains(variable + ": " + setting + " is 'many'; it takes a whole number, " + range);
    }

    @Test
    void givenManyMistakes_whenRead_thenEachIsSaidWithPlaceValueAndRange() {
        assertThat(problems("""
                listen:
                  port: 70000
                  adress: 1.2.3.4
                memory:
                  host_bytes: lots
                network:
                  transport: fast
                """, Map.of("KVCACHE__LIMITS__CONECTIONS", "1", "KVCACHE__NOTHING", "x")))
                .anySatisfy(
                        line -> assertThat(line).isEqualTo("kvcache.yaml:2: listen.port is 70000; it takes 0 to 65535"))
                .anySatisfy(line -> assertThat(line)
                        .isEqualTo("kvcache.yaml:3: there is no setting listen.adress; is it listen.address?"))
                .anySatisfy(
                        line -> assertThat(line).startsWith("kvcache.yaml:5: memory.host_bytes is 'lots'; it takes"))
                .anySatisfy(line -> assertThat(line)
                        .isEqualTo("kvcache.yaml:7: network.transport is 'fast'; it takes auto, io-uring, epoll, nio"))
                .anySatisfy(line -> assertThat(line)
                        .isEqualTo("KVCACHE__LIMITS__CONECTIONS: there is no setting limits.conections;"
                                + " is it limits.connections?"))
                .anySatisfy(
                        line -> assertThat(line).startsWith("KVCACHE__NOTHING: there is no setting nothing; there are"))
                .hasSize(6);
    }

    @Test
    void givenAnAddressThatOthersReach_whenReadWithoutConsent_thenItIsRefused() throws ConfigException {
        assertThat(problems("listen: {address: 0.0.0.0}", Map.of()))
                .singleElement()
                .asString()
                .startsWith("kvcache.yaml:1: listen.address is 0.0.0.0, which other machines can reach");
        assertThat(read("listen: {address: 0.0.0.0, without_auth: true}", Map.of())
                        .access()
                        .listeners()
                        .getFirst()
                        .auth()
                        .allowUnauthenticated())
                .isTrue();
    }

    @Test
    void givenMoreMemoryThanThereIs_whenRead_thenItIsRefused() {
        assertThat(problems("memory: {host_bytes: 15GiB}", Map.of()))
                .singleElement()
                .asString()
                .contains(
                        "memory.host_bytes is 15.0 GiB (16106127360 bytes); with heap and network buffers (",
                        " and records together it takes up to 14.4 GiB (15461882");
    }

    @Test
    void givenTooLittleHostMemory_whenRead_thenTheLeastIsNamed() throws ConfigException {
        assertThat(problems("memory: {host_bytes: 31MiB}", Map.of()))
                .singleElement()
                .asString()
                .contains("memory.host_bytes is 32505856; it takes 33554432 (32 MiB) and up");
        assertThat(problems("memory: {host_bytes: 96MiB}\nlimits: {value_bytes: 93MiB}", Map.of()))
                .singleElement()
                .asString()
                .contains("limits.value_bytes is 97517568; it takes 1 to 96468992, all but 4 MiB of memory.host_bytes");
        assertThat(read("memory: {host_bytes: 96MiB}", Map.of()).requestLimits().valueBytes())
                .isEqualTo(92L << 20);
    }

    @Test
    void givenEvents_whenRead_thenTheyAreCheckedAsListenersAre() throws ConfigException {
        assertThat(read("", Map.of()).events().isEnabled()).isFalse();
        EventsConfig events = read("""
                events:
                  publish: tcp://127.0.0.1:5557
                  replay: tcp://[::1]:5558
                  topic: kv@{namespace}
                  encoding: array
                  hashes: key
                  media: sglang
                  replay_topic: false
                  replay_batches: 7
                  tenant: a
                tenants:
                  - name: a
                """, Map.of()).events();
        assertThat(events)
                .isEqualTo(new EventsConfig(
                        "tcp://127.0.0.1:5557",
                        "tcp://[::1]:5558",
                        "kv@{namespace}",
                        EventEncoding.ARRAY,
                        EventHashes.KEY,
                        EventMedia.SGLANG,
                        false,
                        7,
                        "a",
                        false));
        assertThat(problems("events: {publish: 'tcp://*:5557'}", Map.of()))
                .singleElement()
                .asString()
                .startsWith("kvcache.yaml:1: events.publish is tcp://*:5557, which other machines can reach");
        assertThat(read("events: {publish: 'tcp://*:5557', without_auth: true}", Map.of())
                        .events()
                        .isEnabled())
                .isTrue();
        assertThat(problems("events: {publish: 'udp://127.0.0.1:5557'}", Map.of()))
                .singleElement()
                .asString()
                .contains("it takes tcp://ADDRESS:PORT");
        assertThat(problems("events: {tenant: b}", Map.of()))
                .singleElement()
                .asString()
                .endsWith("events.tenant is b; there are default");
        assertThat(problems("events: {replay: 'tcp://127.0.0.1:5557'}", Map.of()))
                .singleElement()
                .asString()
                .contains("it takes events.publish beside it");
    }

    @Test
    void givenDisks_whenRead_thenEachHasItsOwnLimits() throws ConfigException {
        ServerConfig config = read("""
                disks:
                  - { directory: /mnt/a, bytes: 1TiB, bytes_per_second: 500MiB, bytes_per_day: 2TB }
                  - { directory: /mnt/b, bytes: 64GiB, on_incompatible: discard }
                  - /mnt/c:1GiB
                admission: always
                disk_read_timeout: 700ms
                prefetch: false
                """, Map.of("KVCACHE__DISKS__1__BYTES", "32GiB"));

        assertThat(config.disks())
                .isEqualTo(new DiskTierConfig(
                        List.of(
                                new DiskConfig(
                                        "disks.0",
                                        Path.of("/mnt/a"),
                                        1L << 40,
                                        500L << 20,
                                        2_000_000_000_000L,
                                        OnIncompatible.REFUSE,
                                        true),
                                new DiskConfig(
                                        "disks.1", Path.of("/mnt/b"), 32L << 30, 0, 0, OnIncompatible.DISCARD, true),
                                new DiskConfig(
                                        "disks.2", Path.of("/mnt/c"), 1L << 30, 0, 0, OnIncompatible.REFUSE, true)),
                        List.of(),
                        AdmissionKind.ALWAYS,
                        Duration.ofMillis(700),
                        false,
                        RecomputeConfig.defaults()));
    }

    @Test
    void givenGpus_whenRead_thenEachFormIsTaken() throws ConfigException {
        ServerConfig config = read(
                "gpu: [0:40GiB, { device: 3, bytes: 1MiB }, 2, 4:8GiB:40GiB, { device: 5, bytes: 1GiB, max_bytes: 2GiB }]\ndisks: [/mnt/a:1GiB, /mnt/b:1GiB]",
                Map.of());

        assertThat(config.disks().gpus())
                .containsExactly(
                        new GpuConfig("gpu.0", 0, 40L << 30, 40L << 30),
                        new GpuConfig("gpu.1", 3, 1L << 20, 1L << 20),
                        new GpuConfig("gpu.2", 2, 0, 0),
                        new GpuConfig("gpu.3", 4, 8L << 30, 40L << 30),
                        new GpuConfig("gpu.4", 5, 1L << 30, 2L << 30));
        assertThat(config.disks().gpus().stream().filter(GpuConfig::canResize)).hasSize(2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "[40GiB] | f:1: gpu.0 is '40GiB'; it takes DEVICE:SIZE, for example 0:40GiB, DEVICE:SIZE:MAX or DEVICE, which is 0 to 63",
                "[64:1GiB] | f:1: gpu.0 is '64:1GiB'; it takes DEVICE:SIZE, for example 0:40GiB, DEVICE:SIZE:MAX or DEVICE, which is 0 to 63",
                "[0:1GiB:512MiB] | f:1: gpu.0.max_bytes is 512.0 MiB (536870912 bytes); it takes bytes, which is 1.0 GiB (1073741824 bytes), and up",
                "[{ device: 0, max_bytes: 1GiB }] | f:1: gpu.0.max_bytes is 1.0 GiB (1073741824 bytes); it takes a size beside bytes only",
                "[{ device: 64 }] | f:1: gpu.0.device is 64; it takes 0 to 63",
                "[{ device: x }] | f:1: gpu.0.device is 'x'; it takes a whole number, 0 to 63",
                "[{ bytes: 1GiB }] | f:1: gpu.0.device is not set; it takes 0 to 63",
                "[0:1KiB] | f:1: gpu.0.bytes is 1.0 KiB (1024 bytes); it takes 1MiB and up, or 0 for none",
                "[0, 0:1GiB] | f:1: gpu.1.device is 0, as another's is; each GPU may be named once",
                "[0:1GiB, 1:1GiB, 2:1GiB, 3:1GiB, 4:1GiB, 5:1GiB, 6:1GiB, 7:1GiB, 8:1GiB, 9:1GiB, 10:1GiB, 11:1GiB, 12:1GiB, 13:1GiB, 14:1GiB, 15:1GiB] | f:1: gpu names 16 GPUs with bytes beside 1 disks; there may be 16 of both together",
            })
    void givenGpusThatCannotBe_whenRead_thenTheSettingAndTheRangeAreNamed(String gpus, String problem) {
        ConfigReader.Source file = new ConfigReader.Source("f", "gpu: " + gpus + "\ndisks: [/mnt/a:1GiB]");

        ConfigException wrong = catchThrowableOfType(
                ConfigException.class, () -> new ConfigReader(MACHINE, Map.of()).read(file, Map.of()));

        assertThat(wrong.problems()).containsExactly(problem);
    }

    @Test
    void givenDisksOnTheCommandLine_whenRead_thenTheyReplaceThoseOfTheFile() throws ConfigException {
        ConfigReader.Source file = new ConfigReader.Source("f", "disks: [/mnt/a:1GiB, /mnt/b:1GiB]");

        ServerConfig config = new ConfigReader(MACHINE, Map.of())
                .read(file, Map.of("disks.0", new ConfigReader.Option("--disk", "/mnt/c:2GiB")));

        assertThat(config.disks().disks())
                .containsExactly(
                        new DiskConfig("disks.0", Path.of("/mnt/c"), 2L << 30, 0, 0, OnIncompatible.REFUSE, true));
    }

    @Test
    void givenMistakesOfDisks_whenRead_thenEachIsSaidWithPlaceValueAndRange() {
        assertThat(problems("""
                disks:
                  - { directory: /mnt/a, bytes: 1KiB }
                  - { directory: /mnt/b, bytes: 1GiB, on_incompatible: ask }
                  - { bytes: 1GiB, bytes_per_secnd: 1 }
                  - /mnt/d
                admission: never
                disk_read_timeout: 2m
                """, Map.of()))
                .containsExactly(
                        "kvcache.yaml:2: disks.0.bytes is 1.0 KiB (1024 bytes); it takes 6.0 MiB (6291456 bytes) and up",
                        "kvcache.yaml:3: disks.1.on_incompatible is 'ask'; it takes refuse, discard",
                        "kvcache.yaml:4: disks.2.directory is not set; it takes the name of a directory",
                        "kvcache.yaml:5: disks.3 is '/mnt/d'; it takes DIR:SIZE, for example /mnt/nvme0/kvcache:1TiB",
                        "kvcache.yaml:6: admission is 'never'; it takes always, second-hit, value",
                        "kvcache.yaml:7: disk_read_timeout is 120000ms; it takes 1ms to 60s",
                        "kvcache.yaml:4: there is no setting disks.2.bytes_per_secnd;"
                                + " is it disks.2.bytes_per_second?");
        assertThat(problems("disks: [{ directory: /mnt/a }]", Map.of()))
                .containsExactly("kvcache.yaml:1: disks.0.bytes is not set; it takes 6.0 MiB (6291456 bytes) and up,"
                        + " as in 1TiB");
        assertThat(problems("disks: [/mnt/a:1GiB, /mnt/a/:1GiB]", Map.of()))
                .containsExactly("kvcache.yaml:1: disks name the directory /mnt/a twice");
    }

    @Test
    void givenNoYaml_whenRead_thenTheLineIsNamed() {
        assertThat(problems("listen:\n  port: [1\n", Map.of()))
                .first()
                .asString()
                .startsWith("kvcache.yaml:3: ");
        assertThat(problems("- a\n- b\n", Map.of())).contains("kvcache.yaml:1: the file takes `key: value` lines");
        assertThat(problems("listen:\n  port: [1]\n", Map.of()))
                .contains("kvcache.yaml:2: listen.port takes one value");
        assertThat(problems("listen:\n  port: 1\n  port: 2\n", Map.of())).hasSize(1);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "listener: [] | there is no setting listener; is it listeners?",
                "lissteners: {} | there is no setting lissteners; is it listeners?",
                "disk: [/data:1GiB] | there is no setting disk; is it disks?",
                "disk: /data:1GiB | there is no setting disk; is it disks?",
                "admission: [] | admission is ''; it takes",
                "cluster: { failure_after: 3 } | cluster.failure_after is '3'; it takes a time of 1s to 60s, with ms, s, m or h",
                "transport: { lease: 3 } | transport.lease is '3'; it takes a time of 100ms to 600s, with ms, s, m or h",
                "disk_read_timeout: 3 | disk_read_timeout is '3'; it takes a time of 1ms to 60s, with ms, s, m or h",
                "limits: { stall: 3 } | limits.stall is '3'; it takes a time of 1s and up, with ms, s, m or h",
                "limits: { idle: 3 } | limits.idle is '3'; it takes 0, or a number with ms, s, m or h"
            })
    void givenAMistake_whenRead_thenItsMessageNamesWhatIsTaken(String yaml, String message) {
        assertThat(problems(yaml + "\n", Map.of()).getFirst()).startsWith("kvcache.yaml:1: " + message);
    }

    @Test
    void givenEmptyListsAndSections_whenRead_thenDefaultsCount() throws ConfigException {
        assertThat(read("disks: []\nlisteners: []\ntenants: []\nmemory: {}\n", Map.of()))
                .isEqualTo(ServerConfig.defaults(MACHINE));
    }

    @Test
    void givenADiskAtOnce_whenItsSettingsAreShown_thenItsPartsHaveItsSource() throws ConfigException {
        ConfigReader reader = new ConfigReader(MACHINE, Map.of());
        reader.read(
                ConfigReader.Source.NONE,
                Map.of(
                        "disks.0", new ConfigReader.Option("--disk", "/data:2GiB"),
                        "gpu.0", new ConfigReader.Option("--gpu", "0:1GiB")));

        assertThat(reader.settingsInForce())
                .filteredOn(each -> each.name().matches("(disks|gpu)\\.0\\.(directory|bytes|max_bytes|device|coding)"))
                .extracting(each -> each.name() + " " + each.source())
                .containsExactlyInAnyOrder(
                        "disks.0.directory --disk",
                        "disks.0.bytes --disk",
                        "disks.0.coding default",
                        "gpu.0.device --gpu",
                        "gpu.0.bytes --gpu",
                        "gpu.0.max_bytes --gpu");
    }
}
