package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Addresses whose carriers are in modules of their own, in a JVM without these.
final class MissingCarrierTest {

    @ParameterizedTest
    @CsvSource({
        "aeron:ipc?dir=/tmp/kvcache-none, io.kvcache:kvcache-transport-aeron",
        "aeron:, io.kvcache:kvcache-transport-aeron",
        "ucx:127.0.0.1:7420?tls=tcp, io.kvcache:kvcache-transport-ucx"
    })
    void givenNoModuleOfACarrier_whenItsAddressIsUsed_thenTheErrorNamesTheArtifact(String address, String artifact) {
        assertThatIllegalStateException()
                .isThrownBy(() -> RemoteKvCache.builder(address))
                .withMessageContainingAll(address, artifact);
    }
}
