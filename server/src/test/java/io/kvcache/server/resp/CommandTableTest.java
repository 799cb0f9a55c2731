package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class CommandTableTest {

    private final CountingMap commands = new CountingMap();
    private final CommandTable table = table(commands);

    @Test
    void givenRequest_whenEveryStepNeedsItsCommand_thenTableIsSearchedOnce() {
        RespRequest request = request(new RespRequest(), "ping");

        assertThat(table.label(request)).isEqualTo("ping");
        assertThat(table.validationError(request)).isNull();
        assertThat(request.command(table)).isNotNull();

        assertThat(commands.lookups).isEqualTo(1);
    }

    @Test
    void givenRepeatedCommand_whenItIsResolved_thenTableIsNotSearchedAgain() {
        RespRequest first = request(new RespRequest(), "PING");
        table.label(first);

        assertThat(table.label(request(new RespRequest(first), "PING"))).isEqualTo("ping");

        assertThat(commands.lookups).isEqualTo(1);
    }

    @Test
    void givenUnknownCommand_whenItIsResolvedTwice_thenTableIsSearchedOnce() {
        RespRequest request = request(new RespRequest(), "PONG");

        assertThat(table.label(request)).isEqualTo("unknown");
        assertThat(table.label(request)).isEqualTo("unknown");

        assertThat(commands.lookups).isEqualTo(1);
    }

    @Test
    void givenOtherCommandThanBefore_whenItIsResolved_thenItIsNotTheOneBefore() {
        RespRequest first = request(new RespRequest(), "PING");
        table.label(first);

        assertThat(table.label(request(new RespRequest(first), "ECHO"))).isEqualTo("echo");
        assertThat(table.label(request(new RespRequest(first), "PONG"))).isEqualTo("unknown");
    }

    @Test
    void givenClientThatBecameOtherTenant_whenItRepeatsACommand_thenItsOwnTableAnswers() {
        RespRequest first = request(new RespRequest(), "PING");
        table.label(first);
        CommandTable other = table(Map.of());

        assertThat(other.label(request(new RespRequest(first), "PING"))).isEqualTo("unknown");
    }

    private static CommandTable table(Map<String, CommandSpec> commands) {
        return new CommandTable(null, null, null, "", new RespStats(new ByteBudget(1 << 20)), commands);
    }

    private static RespRequest request(RespRequest request, String name) {
        request.add(name.getBytes(StandardCharsets.US_ASCII));
        return request;
    }

    private static final class CountingMap extends HashMap<String, CommandSpec> {

        private static final long serialVersionUID = 1;

        private int lookups;

        CountingMap() {
            for (String name : List.of("PING", "ECHO")) {
                CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
                put(name, CommandSpec.of(name, -1, "fast", none, (session, request, out) -> {}));
            }
        }

        @Override
        public @Nullable CommandSpec get(Object name) {
            lookups++;
            return super.get(name);
        }
    }
}
