package io.kvcache.bench.example;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyContract;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The policy of docs/embedding.md keeps the contract, and is found by its class.
final class Lru2Test extends EvictionPolicyContract {

    private static final EvictionPolicyFactory LRU_2 = EvictionPolicies.ofClass(Lru2.class.getName());

    @Override
    protected List<EvictionPolicyFactory> policies() {
        return List.of(LRU_2);
    }

    @Test
    void givenATrace_whenReplayed_thenItFindsNearlyAsMuchAsLru() {
        Trace trace = new TraceGenerator(Workload.mixed(), 11).generate("generated:11", 1500);
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        int blocks = forest.nodeCount() / 10;

        double lru = new PolicyReplay(PolicyKind.LRU).run(forest, blocks, 0).blockHitRatio();
        double lru2 = new PolicyReplay(LRU_2).run(forest, blocks, 0).blockHitRatio();

        assertThat(lru2).isBetween(0.5 * lru, 1.5 * lru).isNotEqualTo(lru);
    }

    @Test
    void givenTheDocument_whenCompared_thenItsListingIsThisClass() throws IOException {
        Path source = Path.of("src/test/java/io/kvcache/bench/example/Lru2.java");
        String code = Files.readString(source)
                .lines()
                .dropWhile(line -> !line.startsWith("public final class"))
                .reduce("", (all, line) -> all + line + "\n");

        assertThat(Files.readString(Path.of("../docs/embedding.md"))).contains("```java\n" + code + "```");
    }

    @Test
    void givenClassesThatAreNoPolicy_whenAsked_thenTheErrorSaysWhatIsNeeded() {
        assertThatThrownBy(() -> EvictionPolicies.ofClass("com.example.None"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("com.example.None is not on the class path");
        assertThatThrownBy(() -> EvictionPolicies.ofClass("java.lang.String"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("implements neither");
        assertThatThrownBy(() -> EvictionPolicies.ofClass(Hidden.class.getName()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("must be public and have a public constructor without parameters");
    }

    private static final class Hidden implements EvictionPolicyFactory {
        @Override
        public String commandName() {
            return "hidden";
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new Lru2(records, state);
        }
    }
}
