package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class KeyOwnershipRulesTest {

    private final KeyOwnershipRules keyOwnershipRules = KeyOwnershipRules.of(
            Map.of("blue:", "blue", "blue:dark:", "navy", "grün/", "green"),
            Map.of("salt-of-red", "red", "another-of-red", "red", "salt-of-pink", "pink"));

    @ParameterizedTest
    @CsvSource(nullValues = "-", textBlock = """
            blue:x,                              blue
            blue:,                               blue
            blue:dark:x,                         navy
            blue:dark,                           blue
            grün/x,                              green
            Blue:x,                              -
            x blue:,                             -
            m@01000000@ab12@salt-of-red,         red
            m@01000000@0@ab12@another-of-red,    red
            m@1@0@ab12@salt-of-pinkmetadata,     pink
            m@1@0@ab12@salt-of-pink:kv_bytes,    pink
            blue:m@ab12@salt-of-red,             red
            blue:m@salt-of-red@ab12,             blue
            salt-of-red,                         -
            m@salt-of-re,                        -
            m@salt-of-redd,                      -
            metadata,                            -
            @,                                   -
            """)
    void givenAKey_whenAskedWhoseItIs_thenItsSaltOrItsLongestPrefixTells(String key, @Nullable String owner) {
        assertThat(keyOwnershipRules.ownerOf(key.getBytes(java.nio.charset.StandardCharsets.UTF_8)))
                .isEqualTo(owner);
    }

    @ParameterizedTest
    @CsvSource(nullValues = "-", textBlock = """
            *,                     -
            blue*,                 -
            b*lue:x,               -
            blue:*,                blue
            blue:[a]x,             blue
            blue:dark:?,           navy
            blue\\:x,               -
            *@salt-of-red,         red
            m*@salt-of-redmetadata, red
            *salt-of-red,          -
            *[@]salt-of-red,       -
            """)
    void givenAPattern_whenItsEndsNameATenant_thenItIsHis(String pattern, @Nullable String owner) {
        assertThat(keyOwnershipRules.ownerOfPattern(TestKeyspace.key(pattern))).isEqualTo(owner);
    }

    @Test
    void givenNames_whenNoKeyIsMeant_thenPrefixesAndSaltsAreApart() {
        assertThat(keyOwnershipRules.ownerOfSalt("salt-of-red")).isEqualTo("red");
        assertThat(keyOwnershipRules.ownerOfSalt("")).isNull();
        assertThat(KeyOwnershipRules.of(Map.of(), Map.of())).isSameAs(KeyOwnershipRules.NONE);
        assertThat(KeyOwnershipRules.NONE.ownerOf(TestKeyspace.key("blue:x"))).isNull();
    }
}
