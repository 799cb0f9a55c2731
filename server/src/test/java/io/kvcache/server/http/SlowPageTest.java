package io.kvcache.server.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.access.OpenListener;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.EmbeddedConnection;
import io.netty.handler.codec.http.HttpRequest;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

final class SlowPageTest {

    private final CountDownLatch made = new CountDownLatch(1);

    private EmbeddedConnection connect(TestKeyspace test, Supplier<String> body) {
        HttpEndpoint pages = new HttpEndpoint() {
            @Override
            public List<String> paths() {
                return List.of("/slow");
            }

            @Override
            public HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
                return HttpResponder.slowPageHandler(request, TextEndpoint.of("text/plain", body));
            }
        };
        HttpConfig config =
                TestHttpConfig.of(OpenListener.auth(test.time()), test.keyspace(), Map.of(), List.of(pages), Set.of());
        return new EmbeddedConnection(new HttpProtocol(config), test.time());
    }

    private static String request(String path) {
        return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    }

    @Test
    void givenAPageThatTakesLong_whenAsked_thenTheLoopIsFreeAndTheNextReplyFollowsIt() {
        try (TestKeyspace test = TestKeyspace.small();
                EmbeddedConnection connection = connect(test, () -> {
                    await(made);
                    return "slow page";
                })) {
            assertThat(connection.ask(request("/slow"))).isEmpty();
            assertThat(connection.ask(request("/v1/objects/k"))).isEmpty();
            made.countDown();

            StringBuilder replies = new StringBuilder();
            while (replies.indexOf(" 404 ") < 0) {
                Pause.briefly();
                connection.channel().runPendingTasks();
                replies.append(connection.text());
            }
            assertThat(replies).containsSubsequence("200 OK", "slow page", " 404 ");
        }
    }

    @Test
    void givenAPageThatFails_whenAsked_thenTheConnectionEnds() {
        try (TestKeyspace test = TestKeyspace.small();
                EmbeddedConnection connection = connect(test, () -> {
                    throw new IllegalStateException("a bug");
                })) {
            assertThat(connection.ask(request("/slow"))).isEmpty();
            while (connection.isOpen()) {
                Pause.briefly();
                connection.channel().runPendingTasks();
            }
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
