package io.kvcache.core.engine;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Hashes of engines in the keys of values, with the numbers of the engines' own events.
final class EngineValueKeyTest {

    private static long hashIn(String layout, byte[] key) {
        return EngineValueKey.hashIn(Namespace.builder("m").layout(layout).build(), key);
    }

    @Test
    void givenAKeyOfVllmsTier_whenRead_thenItsGroupIsNoPartOfTheHash() {
        byte[] key = HexFormat.of()
                .parseHex("58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111" + "00000003");
        assertThat(Long.toUnsignedString(hashIn("vllm-tier/2 tp=1", key))).isEqualTo("9561501211280363793");
        assertThat(hashIn("vllm-tier/2", new byte[3])).isZero();
        assertThat(hashIn("of another client", key)).isZero();
    }

    @Test
    void givenAKeyOfLmcachesAdapter_whenRead_thenItEndsWithTheHash() {
        byte[] key = ("m@0@0@@" + "\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u00ff").getBytes(ISO_8859_1);
        assertThat(hashIn("lmcache/1", key)).isEqualTo(0x01020304050607ffL);
    }

    @Test
    void givenAKeyOfSglang_whenRead_thenItBeginsWithTheHash() {
        String key = "77d735ce838418aa151bd96b5b1e78ee63860892e0a95c00fe34178442be9b07";
        for (String layout : List.of("sglang/2 pool=kv mla=False", "sglang/2 sha256=0")) {
            assertThat(hashIn(layout, key.getBytes(ISO_8859_1))).isEqualTo(8635429971592222890L);
            assertThat(hashIn(layout, "x".getBytes(ISO_8859_1))).isZero();
        }
        assertThat(hashIn("sglang/2 pool=mamba mla=False", key.getBytes(ISO_8859_1)))
                .isZero();
        assertThat(EngineValueKey.isSigned(
                        Namespace.builder("m").layout("sglang/2 pool=kv").build()))
                .isTrue();
    }

    @ParameterizedTest
    @CsvSource({
        "vllm@m@1@0@00ff01@e1bc29393a2da9fd, e1bc29393a2da9fd",
        "vllm@m@1@0@1111111111111111e1bc29393a2da9fd@bfloat16kv_bytes, e1bc29393a2da9fd",
        "m@1@0@e1bc2939:metadata, e1bc2939",
        "m@1@0@-0000000f, fffffffffffffff1",
        "a plain key, 0",
        "user@host, 0"
    })
    void givenAKeyOfAValue_whenRead_thenTheDigestOfLmcachesIsItsHash(String key, String hash) {
        assertThat(Long.toHexString(hashIn("", key.getBytes(ISO_8859_1)))).isEqualTo(hash);
    }
}
