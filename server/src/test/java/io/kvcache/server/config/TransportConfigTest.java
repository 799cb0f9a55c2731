package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.kvcache.server.config.TransportConfig.AeronConfig;
import io.kvcache.server.config.TransportConfig.UcxConfig;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class TransportConfigTest {

    private static final HostResources MACHINE = new HostResources(16L << 30, 4);

    private static ServerConfig read(String yaml, Map<String, String> environment) throws ConfigException {
        return new ConfigReader(MACHINE, environment).read(new ConfigReader.Source("f", yaml), Map.of());
    }

    private static String settled(String yaml, boolean free) throws ConfigException {
        return read(yaml, Map.of()).withAutoResolved(port -> free).transport().listen();
    }

    @Test
    void givenNothing_whenSettled_thenTheUsualPortOfLoopbackIsTakenIfItIsFree() throws ConfigException {
        assertThat(read("", Map.of()).transport().isTcpEnabled()).isFalse();
        assertThat(settled("", true)).isEqualTo("127.0.0.1:7420");
        assertThat(settled("", false)).isEmpty();
        ServerConfig usual = read("transport: {lease: 2s}", Map.of()).withAutoResolved(port -> true);
        assertThat(usual.transport().lease()).isEqualTo(Duration.ofSeconds(2));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "transport: {listen: off}",
                "transport: {listen: ''}",
                "listen: {port: 0}",
                "listen: {port: 7420}",
                "listen: {address: 0.0.0.0, without_auth: true}",
                "tenants: [{name: default, password_file: /p}]",
                "tenants: [{name: blue}]"
            })
    void givenAServerForOthersToo_whenSettled_thenThereIsNoEndpointThatWasNotAskedFor(String yaml)
            throws ConfigException {
        assertThat(settled(yaml, true)).isEmpty();
    }

    @Test
    void givenAPlace_whenSettled_thenThatIsIt() throws ConfigException {
        assertThat(settled("transport: {listen: '127.0.0.1:7421'}", false)).isEqualTo("127.0.0.1:7421");
    }

    @Test
    void givenASection_whenRead_thenItIsWhatItSaysAndTheEnvironmentGoesBefore() throws ConfigException {
        String yaml = "transport: { listen: '[::1]:7420', secret_file: /s, connections: 3, lease: 2s }";

        TransportConfig read =
                read(yaml, Map.of("KVCACHE__TRANSPORT__CONNECTIONS", "4")).transport();

        assertThat(read)
                .isEqualTo(new TransportConfig(
                        "[::1]:7420", "/s", false, 4, Duration.ofSeconds(2), "auto", AeronConfig.disabled()));
        assertThat(read.socketAddress().getPort()).isEqualTo(7420);
        assertThat(read.socketAddress().getAddress().isLoopbackAddress()).isTrue();
    }

    @Test
    void givenOtherAddressesThanLoopback_whenThereAreSecretsOrConsent_thenGood() throws ConfigException {
        assertThat(read("transport: {listen: '0.0.0.0:1', secret_file: /s}", Map.of())
                        .transport()
                        .requiresSecret(List.of()))
                .isTrue();
        read("transport: {listen: '0.0.0.0:1', without_auth: true}", Map.of());
        ServerConfig tenants =
                read("transport: {listen: '0.0.0.0:1'}\ntenants: [{name: a, secret_file: /s}]", Map.of());
        assertThat(tenants.transport().requiresSecret(tenants.access().tenants()))
                .isTrue();
    }

    @Test
    void givenAeron_whenRead_thenEachServerOfAUserHasAFolderOfItsOwn() throws ConfigException {
        TransportConfig first = read("transport: {listen: '127.0.0.1:7420', aeron: 'aeron:ipc'}", Map.of())
                .transport();
        TransportConfig second = read("transport: {listen: '127.0.0.1:7421', aeron: 'aeron:ipc'}", Map.of())
                .transport();
        assertThat(first.aeron().addressFor(first.port()).folder())
                .isNotNull()
                .isNotEqualTo(second.aeron().addressFor(second.port()).folder());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "transport: {aeron: 'aeron:ipc?dir=/dev/shm/x'}",
                "transport: {aeron: 'aeron:ipc?dir=/dev/shm/x', secret_file: /s}",
                "transport: {aeron: 'aeron:udp?endpoint=127.0.0.1:1'}",
                "transport: {aeron: 'aeron:udp?endpoint=0.0.0.0:1', secret_file: /s}",
                "transport: {aeron: 'aeron:udp?endpoint=0.0.0.0:1', without_auth: true}"
            })
    void givenAeronAlone_whenRead_thenItServesAndDoesNotListen(String yaml) throws ConfigException {
        TransportConfig read = read(yaml, Map.of()).transport();
        assertThat(read.isServing()).isTrue();
        assertThat(read.isTcpEnabled()).isFalse();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            {} | false | off
            {listen: '127.0.0.1:7420', shared_memory: x, ucx: on} | true | ''
            {listen: '127.0.0.1:7420', shared_memory: x, ucx: 'rc,tcp'} | true | rc,tcp
            {listen: '0.0.0.0:7420', shared_memory: x, secret_file: /s, ucx: shm} | true | shm
            """)
    void givenUcx_whenRead_thenItIsOffOrHasItsTransports(String yaml, boolean on, String transports)
            throws ConfigException {
        UcxConfig read = read("transport: " + yaml, Map.of()).transport().ucx();
        assertThat(read.isEnabled()).isEqualTo(on);
        assertThat(read.transports()).isEqualTo(transports);
    }

    private static @Nullable Path shared(String yaml) throws ConfigException {
        ServerConfig read = read(yaml, Map.of());
        return read.transport().sharedMemoryDirectory(read.access().tenants());
    }

    @Test
    void givenAName_whenRead_thenThatFolderIsShared() throws ConfigException {
        assertThat(shared("transport: {listen: '127.0.0.1:7420', shared_memory: mine}"))
                .isEqualTo(Path.of("/dev/shm/mine"));
        assertThat(read("transport: {listen: '127.0.0.1:7420', shared_memory: mine}", Map.of())
                        .transport()
                        .isSharedMemoryExplicit())
                .isTrue();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void givenNothingToHide_whenRead_thenAFolderOfThePortIsShared() throws ConfigException {
        assertThat(String.valueOf(shared("transport: {listen: '127.0.0.1:7420'}")))
                .startsWith("/dev/shm/kvcache-")
                .endsWith("-7420");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            transport: {}
            transport: {listen: '127.0.0.1:7420', shared_memory: off}
            transport: {listen: '127.0.0.1:0'}
            transport: {listen: '0.0.0.0:7420', secret_file: /s}
            transport: {listen: '127.0.0.1:7420'}\\ntenants: [{name: a}]
            transport: {listen: '127.0.0.1:7420'}\\ntenants: [{name: default, password_file: /p}]
            """)
    void givenSomethingToHideOrNoNeed_whenRead_thenNothingIsSharedByItself(String yaml) throws ConfigException {
        assertThat(shared(yaml.replace("\\n", "\n"))).isNull();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            transport: {listen: '0.0.0.0:7420'} | f:1: transport.listen is 0.0.0.0:7420, which other machines can reach
            transport: {listen: '7420'} | transport.listen is 7420; it takes auto, off, or HOST:PORT
            transport: {listen: 'localhost:70000'} | or HOST:PORT, the port from 0 to 65535
            transport: {listen: '::1:7420'} | or HOST:PORT
            transport: {listen: 'no.such.host.invalid:1'} | whose host is not known
            transport: {secret_file: /s} | f:1: transport.secret_file is /s; it takes transport.listen beside it
            transport: {listen: 'localhost:1', connections: 0} | transport.connections is 0; it takes 1 to 65536
            transport: {listen: 'localhost:1', lease: 1h} | transport.lease is 3600000ms; it takes 100ms to 600s
            transport: {listen: 'localhost:1', secret: x} | there is no setting transport.secret; is it transport.
            transport: {shared_memory: x} | transport.shared_memory is x; it takes transport.listen beside it
            transport: {listen: 'localhost:1', shared_memory: a/b} | transport.shared_memory is 'a/b'; it takes auto, off, or
            transport: {listen: 'localhost:1', shared_memory: x}\\ntenants: [{name: a}] | and there are 2 tenants; a client that maps it reads the values of all
            transport: {aeron: 'udp:x'} | f:1: transport.aeron is udp:x: address
            transport: {aeron: 'aeron:ipc?term-length=5'} | transport.aeron is aeron:ipc?term-length=5: term-length
            transport: {aeron: 'aeron:ipc'} | it takes transport.listen with a port beside it, or dir=FOLDER
            transport: {aeron: 'aeron:udp?endpoint=0.0.0.0:1'} | which other machines can reach without authentication
            transport: {aeron: 'aeron:udp?endpoint=no.such.host.invalid:1'} | whose host is not known
            transport: {listen: 'localhost:1', tls: {certificate: /c}} | transport.tls takes certificate and key, or keystore
            transport: {aeron: 'aeron:udp?endpoint=127.0.0.1:1', tls: {keystore: /k}} | transport.tls is set; it takes transport.listen beside it
            transport: {listen: 'localhost:1', tls: {cert: /c}} | there is no setting transport.tls.cert; is it transport.tls.
            transport: {listen: 'localhost:1', ucx: 'no way'} | transport.ucx is 'no way'; it takes off, on, or the names
            transport: {listen: off, ucx: on} | transport.ucx is on; it takes transport.listen beside it
            transport: {listen: 'localhost:1', shared_memory: off, ucx: tcp} | transport.ucx is tcp, and no memory is shared with clients
            transport: {listen: '0.0.0.0:1', secret_file: /s, ucx: on} | it takes transport.shared_memory with a name
            transport: {listen: '0.0.0.0:1', shared_memory: x, ucx: on} | transport.listen is 0.0.0.0:1, which other machines can reach
            tenants: [{name: a, secret_file: /s}] | tenants.0.secret_file is /s; it takes transport.listen beside it
            transport: {listen: 'localhost:1', secret_file: /t}\\ntenants: [{name: a, secret_file: /s}] | transport.secret_file is /t; it takes one of them
            """)
    void givenAnEndpointThatIsWrong_whenRead_thenItIsSaidWhy(String yaml, String problem) {
        ConfigException wrong =
                catchThrowableOfType(ConfigException.class, () -> read(yaml.replace("\\n", "\n"), Map.of()));
        assertThat(wrong.problems()).anySatisfy(line -> assertThat(line).contains(problem));
    }
}
