package io.kvcache.server.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.image.ImageEntry.ImageCommand;
import io.kvcache.server.image.ImageEntry.ImageCommand.Connect;
import io.kvcache.server.image.ImageEntry.ImageCommand.Health;
import io.kvcache.server.image.ImageEntry.ImageCommand.Run;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ImageCommandTest {

    private static ImageCommand of(String line, Map<String, String> environment) {
        List<String> words = List.of(line.split(" "));
        return ImageCommand.of(words.getFirst(), words.subList(1, words.size()), environment);
    }

    private static ImageCommand of(String line) {
        return of(line, Map.of());
    }

    @Test
    void givenACommandOfTheServer_whenRead_thenItIsRun() {
        assertThat(of("kvcache serve --port 1")).isEqualTo(new Run(List.of("serve", "--port", "1")));
        assertThat(of("kvcache")).isEqualTo(new Run(List.of("help")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "lmcache_server 0.0.0.0 65432 cpu",
                "lmcache_server 0.0.0.0 65432",
                "lmcache_experimental_server 0.0.0.0 65432 cpu",
                "kvcache lmcache_server 0.0.0.0 65432 cpu",
                "python3 -m lmcache.v1.server 0.0.0.0 65432 cpu",
                "kvcache python -m lmcache.server 0.0.0.0 65432 cpu"
            })
    void givenACommandOfLmcache_whenRead_thenItServesLmAlone(String line) {
        assertThat(of(line))
                .isEqualTo(new Run(List.of(
                        "serve",
                        "--address",
                        "0.0.0.0",
                        "--port",
                        "65432",
                        "--set",
                        "listen.without_auth=true",
                        "--set",
                        "listen.protocol=lm")));
    }

    @Test
    void givenADirectoryAndAnEnvironment_whenRead_thenTheyAreDiskAndProtocol() {
        Run run =
                (Run) of("lmcache_server h 1 /disk", Map.of("KVCACHE_DISK_BYTES", "5GiB", "KVCACHE_PROTOCOL", "auto"));
        assertThat(run.arguments()).contains("listen.protocol=auto").endsWith("--disk", "/disk:5GiB");
        assertThat(((Run) of("lmcache_server h 1 /disk")).arguments()).endsWith("/disk:64GiB");
    }

    @Test
    void givenAProbe_whenRead_thenItsPortIsAsked() {
        assertThat(of("python3 /opt/health_probe.py h 65432")).isEqualTo(new Connect("h", 65_432));
        assertThat(of("kvcache health")).isEqualTo(new Health(List.of(9090, 7379)));
        assertThat(of("kvcache health 7379")).isEqualTo(new Health(List.of(7379)));
    }

    @ParameterizedTest
    @CsvSource({
        "lmcache_server h, lmcache_server takes HOST PORT [DEVICE]",
        "lmcache_server h 1 cpu more, lmcache_server takes HOST PORT [DEVICE]",
        "lmcache_server h 1 gpu, 'absolute directory as DEVICE, not ''gpu'''",
        "python3, only lmcache_server",
        "python3 -c print(), only lmcache_server",
        "python3 /x/health_probe.py h, health_probe.py takes HOST PORT",
        "python3 /x/health_probe.py h 0, allowed: 1 to 65535",
        "kvcache health x, 'port ''x'' is not one'",
        "kvcache health 1 2, health takes a PORT or nothing"
    })
    void givenSomethingElse_whenRead_thenItSaysWhatCanBeRun(String line, String said) {
        assertThatThrownBy(() -> of(line))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(said);
    }
}
