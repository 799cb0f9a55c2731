package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.jlama.JlamaSequence.PromptBatches;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

final class PromptBatchesTest {

    @Test
    void givenAnyLength_whenCut_thenEachBatchIsRightAndNoneIsMissing() {
        for (int most : new int[] {1, 3, 4, 5, 7, 32, 255, 256, 1000}) {
            for (int tokens = 0; tokens < 1500; tokens++) {
                int[] sizes = PromptBatches.of(tokens, most);
                assertThat(Arrays.stream(sizes).sum()).isEqualTo(tokens);
                assertThat(Arrays.stream(sizes).boxed())
                        .allMatch(size -> size > 0 && size <= most)
                        .allMatch(size -> size < PromptBatches.TILE_ROWS || size % PromptBatches.TILE_ROWS == 0);
            }
        }
    }

    @Test
    void givenOneMoreThanTiles_whenCut_thenItIsABatchOfItsOwn() {
        assertThat(PromptBatches.of(48, 256)).containsExactly(45, 3);
        assertThat(PromptBatches.of(261, 256)).containsExactly(255, 5, 1);
    }
}
