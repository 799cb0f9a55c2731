package io.kvcache.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.KvCache;
import io.kvcache.junit.KvCacheServerExtension;
import io.kvcache.transport.client.RemoteKvCache;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

@ExtendWith(OutputCaptureExtension.class)
final class RemoteCacheTest {

    @RegisterExtension
    static final KvCacheServerExtension SERVER = KvCacheServerExtension.create();

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(KvCacheAutoConfiguration.class))
            .withPropertyValues("kvcache.memory-bytes=16MB");

    private static String address() {
        return SERVER.addresses().transport();
    }

    @Test
    void givenAnAddress_whenStarted_thenTheBeanSharesTheServer() {
        runner.withPropertyValues("kvcache.addresses=" + address()).run(context -> {
            KvCache cache = context.getBean(KvCache.class);
            assertThat(cache).isInstanceOf(RemoteKvCache.class);
            assertThat(TestBlocks.put(cache)).isEqualTo(4);
            assertThat(TestBlocks.found(SERVER.cache())).isEqualTo(4);
        });
    }

    @Test
    void givenSeveralAddresses_whenModeIsRemote_thenTheFailureNamesTheModeOfACluster(CapturedOutput output) {
        assertThatThrownBy(() -> start("--kvcache.mode=remote", "--kvcache.addresses=127.0.0.1:1," + address()));
        assertThat(output)
                .contains("kvcache.addresses")
                .contains("kvcache.mode is remote; allowed: 1 address, or several with kvcache.mode cluster");
    }

    @Test
    void givenSeveralAddressesOfNoCluster_whenStarted_thenTheFailureSaysSo(CapturedOutput output) {
        assertThatThrownBy(() -> start("--kvcache.addresses=127.0.0.1:1," + address()));
        assertThat(output).contains("kvcache.addresses has several servers, but the server is in no cluster");
    }

    @Test
    void givenAServerThatStartsLater_whenStartupWaits_thenTheApplicationStarts() throws Exception {
        String address = address();
        SERVER.stop();
        CompletableFuture<Void> later = CompletableFuture.runAsync(
                SERVER::start, CompletableFuture.delayedExecutor(600, TimeUnit.MILLISECONDS));
        runner.withPropertyValues("kvcache.addresses=" + address, "kvcache.startup-wait=30s")
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(KvCache.class));
        later.get(30, TimeUnit.SECONDS);
    }

    @Test
    void givenNoServer_whenStarted_thenTheFailureSaysWhatToDo(CapturedOutput output) {
        assertThatThrownBy(() -> start("--kvcache.addresses=127.0.0.1:1", "--kvcache.startup-wait=300ms"));
        assertThat(output)
                .contains("No KVCache server at kvcache.addresses accepted this application within PT0.3S")
                .contains("127.0.0.1:1")
                .contains("set kvcache.startup-wait")
                .doesNotContain("\tat io.kvcache");
    }

    @Test
    void givenAShortSecret_whenStarted_thenTheFailureDoesNotShowIt(CapturedOutput output) {
        assertThatThrownBy(() -> start("--kvcache.addresses=" + address(), "--kvcache.secret=hunter2"));
        assertThat(output)
                .contains("Property kvcache.secret is invalid: the secret has 7 bytes; allowed: 16 and up")
                .doesNotContain("hunter2");
    }

    @Test
    void givenAServerInNoCluster_whenModeIsCluster_thenTheFailureSaysSo(CapturedOutput output) {
        assertThatThrownBy(() -> start("--kvcache.addresses=" + address(), "--kvcache.mode=cluster"));
        assertThat(output).contains("the server is in no cluster").contains("Set kvcache.mode to remote");
    }

    @Test
    void givenAWrongValue_whenStarted_thenTheFailureNamesPropertyValueAndRange(CapturedOutput output) {
        assertThatThrownBy(() -> start("--kvcache.host-bytes=1MB"));
        assertThat(output)
                .contains("kvcache.host-bytes")
                .contains("from property source \"commandLineArgs\"")
                .contains("33554432 and up");
    }

    private static void start(String... arguments) {
        SpringApplication application = new SpringApplication(Application.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        application.run(arguments).close();
    }

    @EnableAutoConfiguration
    static class Application {}
}
