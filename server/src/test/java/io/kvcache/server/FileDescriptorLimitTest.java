package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.FrontEnds.FileDescriptorLimit;
import java.io.IOException;
import org.junit.jupiter.api.Test;

final class FileDescriptorLimitTest {

    @Test
    void givenALimitOnFiles_whenConnectionsAreCounted_thenNoMoreAreTakenThanCanBeOpen() throws IOException {
        assertThat(FileDescriptorLimit.maxConnections(10_000, 256, 65_536)).isEqualTo(10_000);
        assertThat(FileDescriptorLimit.maxConnections(10_000, 256, 4096)).isEqualTo(4096 - 384 - 256);
        assertThat(FileDescriptorLimit.maxConnections(10, 0, 394)).isEqualTo(10);
        assertThat(FileDescriptorLimit.maxConnections(10_000, 0, Long.MAX_VALUE))
                .isEqualTo(10_000);
    }

    @Test
    void givenHardlyAnyFiles_whenConnectionsAreCounted_thenTheLimitTheNeedAndTheRemedyAreNamed() {
        assertThatThrownBy(() -> FileDescriptorLimit.maxConnections(10_000, 256, 700))
                .isInstanceOf(IOException.class)
                .hasMessage("this process may open 700 files (ulimit -n); limits.connections of 10000 and"
                        + " transport.connections of 256 take 10640; raise it (ulimit -n 65536, systemd:"
                        + " LimitNOFILE=65536, docker: --ulimit nofile=65536) or set limits.connections lower");
    }
}
