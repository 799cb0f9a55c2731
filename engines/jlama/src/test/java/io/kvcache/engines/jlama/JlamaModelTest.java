package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tjake.jlama.safetensors.DType;
import io.kvcache.core.identity.Dtype;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.RandomPrompts;
import io.kvcache.engines.jlama.JlamaFingerprint.JlamaBuild;
import io.kvcache.engines.jlama.JlamaFingerprint.WeightsDigest;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class JlamaModelTest {

    @TempDir
    private Path folder;

    private static final JlamaFingerprint ONE =
            new JlamaFingerprint("llama", "0.8.4 Native", "ab", "i8", "cd", 4, 2, 64, Dtype.F32);

    @Test
    void givenAModel_whenLoaded_thenItIsWhatWasWritten() {
        JlamaFingerprint found = JlamaTestModels.small().fingerprint();
        assertThat(found.model()).isEqualTo("small");
        assertThat(found.build()).startsWith("0.8.4 ");
        assertThat(found.layers()).isEqualTo(4);
        assertThat(found.kvHeads()).isEqualTo(2);
        assertThat(found.headDim()).isEqualTo(64);
        assertThat(found.dtype()).isEqualTo(Dtype.F32);
        assertThat(JlamaTestModels.small().vocabulary()).isEqualTo(RandomLlama.VOCABULARY);
        assertThat(JlamaTestModels.small().contextLength()).isEqualTo(1022);
    }

    @Test
    void givenFingerprints_whenAnyFieldDiffers_thenSoDoTheNamespaces() {
        List<JlamaFingerprint> all = List.of(
                ONE,
                new JlamaFingerprint("other", "0.8.4 Native", "ab", "i8", "cd", 4, 2, 64, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Panama", "ab", "i8", "cd", 4, 2, 64, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Native", "ac", "i8", "cd", 4, 2, 64, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Native", "ab", "f32", "cd", 4, 2, 64, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Native", "ab", "i8", "ce", 4, 2, 64, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Native", "ab", "i8", "cd", 5, 2, 64, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Native", "ab", "i8", "cd", 4, 1, 64, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Native", "ab", "i8", "cd", 4, 2, 32, Dtype.F32),
                new JlamaFingerprint("llama", "0.8.4 Native", "ab", "i8", "cd", 4, 2, 64, Dtype.BF16));
        Set<Object> namespaces = new HashSet<>();
        all.forEach(each -> namespaces.add(each.namespace(16, "", "")));
        namespaces.add(ONE.namespace(64, "", ""));
        namespaces.add(ONE.namespace(16, "blue", ""));
        namespaces.add(ONE.namespace(16, "", "salt"));
        assertThat(namespaces).hasSize(all.size() + 3);
        assertThat(ONE.namespace(16, "", "")).isEqualTo(ONE.namespace(16, "", ""));
    }

    @Test
    void givenWeights_whenOneByteChanges_thenSoDoesTheDigest() throws IOException {
        RandomLlama.SMALL.write(folder);
        String before = WeightsDigest.of(folder);
        assertThat(WeightsDigest.of(folder)).isEqualTo(before).hasSize(64);
        try (FileChannel weights = FileChannel.open(
                folder.resolve("model.safetensors"), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer last = ByteBuffer.allocate(1);
            long at = weights.size() - 2;
            assertThat(weights.read(last, at)).isEqualTo(1);
            last.put(0, (byte) (last.get(0) ^ 1)).flip();
            assertThat(weights.write(last, at)).isEqualTo(1);
        }
        assertThat(WeightsDigest.of(folder)).isNotEqualTo(before);
    }

    @Test
    void givenTheConfiguration_whenRopeChanges_thenSoDoFingerprintAndDigest() throws IOException {
        RandomLlama.SMALL.write(folder);
        Path config = folder.resolve("config.json");
        String before = WeightsDigest.of(folder);
        Files.writeString(config, Files.readString(config).replace("10000.0", "500000.0"));
        assertThat(WeightsDigest.of(folder)).isNotEqualTo(before);
        try (JlamaModel other = JlamaModel.load(folder, JlamaOptions.defaults())) {
            assertThat(other.fingerprint().rope())
                    .isNotEqualTo(JlamaTestModels.small().fingerprint().rope());
        }
    }

    @Test
    void givenNoModel_whenLoaded_thenTheMessageNamesWhatIsMissing() throws IOException {
        assertThatThrownBy(() -> JlamaModel.load(folder, JlamaOptions.defaults()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(folder.toString())
                .hasMessageContaining("config.json");
        RandomLlama.SMALL.write(folder);
        Files.delete(folder.resolve("model.safetensors"));
        assertThatThrownBy(() -> JlamaModel.load(folder, JlamaOptions.defaults()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("safetensors");
    }

    @Test
    void givenAJlamaThatNobodyTried_whenLookedAt_thenItIsRefused() {
        assertThatThrownBy(() -> new JlamaBuild("0.9.0", "Native"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("0.9.0")
                .hasMessageContaining("0.8.4");
    }

    @Test
    void givenOptionsOutOfRange_whenMade_thenTheyAreRefused() {
        assertThatThrownBy(() -> new JlamaOptions(DType.I8, DType.I8, 1)).hasMessageContaining("F32 or BF16");
        assertThatThrownBy(() -> new JlamaOptions(DType.F32, DType.I8, 0)).hasMessageContaining("1 to 1024");
        assertThatThrownBy(() -> GeneratorOptions.DEFAULTS.withVerifiedShare(1.5))
                .hasMessageContaining("0 to 1");
    }

    /// Equal answers prove something only if different prompts have different ones.
    @Test
    void givenARandomModel_whenItSpeaks_thenItsTokensAreMostlyDistinct() {
        int[] prompt = RandomPrompts.random(3, 40);
        int[] said = JlamaTestModels.generateUncached(JlamaTestModels.small(), prompt, 32)
                .tokens();
        assertThat(Arrays.stream(said).distinct().count()).isGreaterThan(20);
        prompt[20]++;
        assertThat(JlamaTestModels.generateUncached(JlamaTestModels.small(), prompt, 32)
                        .tokens())
                .isNotEqualTo(said);
    }
}
