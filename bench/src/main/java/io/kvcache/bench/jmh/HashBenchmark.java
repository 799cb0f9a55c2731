package io.kvcache.bench.jmh;

import io.kvcache.core.hash.Sha256;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.security.MessageDigest;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/// What does it cost to turn a prompt's tokens into keys, and what of it is SHA-256?
///
/// Budget: 8 ns a token in blocks of 16, 3 ns in blocks of 256. `./kvcache bench core --filter hash`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class HashBenchmark {

    /// Tokens in an invocation.
    public static final int TOKENS = 8192;

    @Benchmark
    public BlockChain blocksOf16(Prompt prompt) {
        return BlockChain.of(prompt.by16, prompt.tokens);
    }

    @Benchmark
    public BlockChain blocksOf256(Prompt prompt) {
        return BlockChain.of(prompt.by256, prompt.tokens);
    }

    /// The reference: one digest over the tokens' bytes.
    @Benchmark
    public byte[] sha256(Prompt prompt) {
        return prompt.sha.digest(prompt.bytes);
    }

    /// A prompt that is new each time as far as the store can tell.
    @State(Scope.Thread)
    public static class Prompt {

        final int[] tokens = new SplittableRandom(3).ints(TOKENS).toArray();
        final byte[] bytes = new byte[TOKENS * Integer.BYTES];
        final MessageDigest sha = Sha256.newDigest();
        final Namespace by16 = space(16);
        final Namespace by256 = space(256);

        private static Namespace space(int blockTokens) {
            return Namespace.of("bench", BlockShape.kv(1, 1, 64, blockTokens, Dtype.BF16));
        }
    }
}
