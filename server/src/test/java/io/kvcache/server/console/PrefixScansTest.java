package io.kvcache.server.console;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.http.Viewer;
import io.kvcache.server.keyspace.ManualClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class PrefixScansTest {

    private static final Viewer ADMIN = new Viewer("default", true, true);

    private final ManualClock time = new ManualClock();
    private final PrefixScans scans = new PrefixScans(time);
    private final List<CompletableFuture<Object>> found = new ArrayList<>();

    @AfterEach
    void endScans() {
        found.forEach(each -> each.complete("late"));
    }

    private static Viewer tenant(String name) {
        return new Viewer(name, false, false);
    }

    /// A scan that ends when the test says so, in the order in which they began.
    private @Nullable CompletableFuture<Object> ask(Viewer viewer, String question) {
        CompletableFuture<Object> end = new CompletableFuture<>();
        CompletableFuture<Object> answer = scans.ask(viewer, question, end::join);
        if (answer != null) {
            found.add(end);
        }
        return answer;
    }

    @Test
    void givenATenantThatScans_whenItAsksAnew_thenOthersAndAdministratorsStillMay() {
        assertThat(ask(tenant("red"), "a")).isNotNull();
        assertThat(ask(tenant("red"), "b")).as("one scan a tenant").isNull();
        assertThat(ask(tenant("blue"), "c")).isNotNull();
        assertThat(ask(tenant("green"), "d")).as("the place of administrators").isNull();
        assertThat(ask(ADMIN, "e")).isNotNull();
        assertThat(ask(ADMIN, "f")).as("all places").isNull();
        assertThat(ask(tenant("green"), "a")).as("an answer that is on its way").isNotNull();
    }

    @Test
    void givenAnAnswer_whenAskedAgainWithinASecond_thenItIsTheSame() {
        CompletableFuture<Object> first = Objects.requireNonNull(ask(tenant("red"), "a"));
        found.getFirst().complete("level");
        assertThat(first.join()).isEqualTo("level");
        time.advance(Duration.ofMillis(999));
        assertThat(ask(ADMIN, "a")).isSameAs(first);
        time.advance(Duration.ofMillis(1));
        assertThat(ask(ADMIN, "a")).isNotNull().isNotSameAs(first);
    }

    @Test
    void givenAnAnswer_whenBlocksAreDropped_thenItIsNotGivenAgain() {
        CompletableFuture<Object> first = Objects.requireNonNull(ask(ADMIN, "a"));
        CompletableFuture<Object> running = ask(ADMIN, "b");
        found.getFirst().complete("level");
        first.join();
        scans.onChanged();
        assertThat(ask(ADMIN, "a")).isNotNull().isNotSameAs(first);
        assertThat(ask(ADMIN, "b")).isNotNull().isNotSameAs(running);
        assertThat(ask(ADMIN, "c")).as("those that began before still run").isNull();
    }

    @Test
    void givenAScanThatFails_whenAskedAgain_thenAnotherIsMade() {
        CompletableFuture<Object> failed = Objects.requireNonNull(ask(ADMIN, "a"));
        found.getFirst().completeExceptionally(new IllegalStateException("a bug"));
        assertThatThrownBy(failed::join).hasStackTraceContaining("a bug");
        assertThat(ask(ADMIN, "a")).isNotNull().isNotSameAs(failed);
    }

    @Test
    void givenManyQuestions_whenAnswered_thenOnlySomeAreKept() {
        CompletableFuture<Object> first = null;
        for (int i = 0; i < 100; i++) {
            CompletableFuture<Object> answer = Objects.requireNonNull(ask(ADMIN, "question " + i));
            first = first == null ? answer : first;
            found.getLast().complete(i);
            answer.join();
        }
        assertThat(ask(ADMIN, "question 99")).isCompletedWithValue(99);
        assertThat(ask(ADMIN, "question 0")).isNotSameAs(first);
    }
}
