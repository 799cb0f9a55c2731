package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.ReuseModel.AgeBins;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class ReuseModelTest {

    private static final int LABELS = 3;
    private static final int LESSONS = 60;
    private static final int LESSONS_A_LABEL = 20;
    private static final int OLDEST_BIN = 40;

    private final ReuseModel early = new ReuseModel(ImportanceConfig.DEFAULT);
    private final ReuseModel late = new ReuseModel(ImportanceConfig.DEFAULT);

    @Test
    void givenMoreCountsSinceALesson_whenAskedForTheFirstTime_thenTheAnswerIsThatOfTheLesson() {
        Random random = new Random(5);
        int labels = 1;
        for (int lesson = 0; lesson < LESSONS; lesson++) {
            int oldestBin = OLDEST_BIN - random.nextInt(8);
            early.refresh(0.9, oldestBin);
            late.refresh(0.9, oldestBin);
            float[] answers = densities(early, labels);
            count(random, labels);
            if (lesson % 2 == 0) {
                assertThat(densities(late, labels)).as("lesson %d", lesson).isEqualTo(answers);
            }
            if (labels < LABELS && lesson % LESSONS_A_LABEL == 1) {
                labels++;
                early.addLabel();
                late.addLabel();
            }
        }
    }

    private void count(Random random, int labels) {
        for (int i = 0; i < 500; i++) {
            int kind = random.nextInt(labels * ReuseModel.CLASSES);
            long age = random.nextLong(20_000);
            int bin = random.nextInt(OLDEST_BIN);
            double blockTime = random.nextInt(5000);
            early.addUse(kind, age);
            late.addUse(kind, age);
            early.addExposure(kind, bin, blockTime);
            late.addExposure(kind, bin, blockTime);
        }
    }

    private static float[] densities(ReuseModel model, int labels) {
        float[] densities = new float[labels * ReuseModel.CLASSES * AgeBins.COUNT];
        for (int i = 0; i < densities.length; i++) {
            densities[i] = model.density(i / AgeBins.COUNT, i % AgeBins.COUNT);
        }
        return densities;
    }
}
