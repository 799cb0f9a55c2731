package io.kvcache.engines.llamacpp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.engines.llamacpp.LlamaLibrary.UnsupportedLlamaException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Libraries and models that are not what this adapter knows are refused, with what was found.
final class LlamaLibraryTest {

    private static final LlamaParameterStruct SMALL = new LlamaParameterStruct(
            "a_function", LlamaParameterStruct.booleanField("one", true), LlamaParameterStruct.intField("two", 7));

    @TempDir
    private Path folder;

    /// Fills a struct as a library would.
    private static void fill(MemorySegment room, int... bytes) {
        for (int i = 0; i < bytes.length; i++) {
            if (bytes[i] >= 0) {
                room.set(ValueLayout.JAVA_BYTE, i, (byte) bytes[i]);
            }
        }
    }

    private static void check(int... bytes) {
        SMALL.check("a library", room -> fill(room.allocate(8), bytes));
    }

    @Test
    void givenTheLibraryOfTheJar_whenLoaded_thenItIsTheOneThatIsKnown() {
        assertThat(LlamaTestModels.library().build()).startsWith(LlamaLibrary.SUPPORTED + " ");
        assertThat(LlamaTestModels.library().build()).hasSize(LlamaLibrary.SUPPORTED.length() + 17);
    }

    @Test
    void givenALibraryOfSomethingElse_whenOpened_thenTheMessageNamesItAndWhatItLacks() {
        Path other = Path.of(System.getProperty("java.home"), "lib", "libjimage.so");
        assertThatThrownBy(() -> LlamaLibrary.open(other))
                .isInstanceOf(UnsupportedLlamaException.class)
                .hasMessageContaining(other.toString())
                .hasMessageContaining("llama_decode")
                .hasMessageContaining(LlamaLibrary.SUPPORTED);
    }

    @Test
    void givenNoLibrary_whenOpened_thenTheMessageNamesTheFile() throws IOException {
        Path text = Files.writeString(folder.resolve("libllama.so"), "no library");
        assertThatThrownBy(() -> LlamaLibrary.open(text))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(text.toString());
        Path nothing = folder.resolve("nothing.so");
        assertThatThrownBy(() -> LlamaLibrary.open(nothing))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(nothing.toString());
    }

    @Test
    void givenParameters_whenTheyAreAsKnown_thenPaddingMayBeAnythingOrNothing() {
        check(1, -1, -1, -1, 7, 0, 0, 0);
        check(1, 0, 0, 0, 7, 0, 0, 0);
    }

    @Test
    void givenParametersOfAnotherBuild_whenCompared_thenTheMessageSaysWhatDiffers() {
        assertThatThrownBy(() -> check(1, 1, 0, 0, 7, 0, 0, 0))
                .isInstanceOf(UnsupportedLlamaException.class)
                .hasMessageContaining("a library")
                .hasMessageContaining("between fields");
        assertThatThrownBy(() -> check(1, -1, -1, -1, 8, 0, 0, 0))
                .isInstanceOf(UnsupportedLlamaException.class)
                .hasMessageContaining("two")
                .hasMessageContaining("a_function");
        assertThatThrownBy(() -> check(1)).hasMessageContaining("two").hasMessageContaining("not set");
    }

    @Test
    void givenParametersThatAreLonger_whenCompared_thenNothingIsOverwrittenAndTheMessageSaysSo() {
        int[] longer = {1, -1, -1, -1, 7, 0, 0, 0, 0, 0, 0, 0};
        assertThatThrownBy(() -> SMALL.check("a library", room -> fill(room.allocate(12), longer)))
                .isInstanceOf(UnsupportedLlamaException.class)
                .hasMessageContaining("12 bytes, and 8");
    }

    @Test
    void givenNoModel_whenLoaded_thenTheMessageNamesTheFile() throws IOException {
        Path text = Files.writeString(folder.resolve("model.gguf"), "no model");
        assertThatThrownBy(() -> LlamaModel.load(LlamaTestModels.library(), text, LlamaTestModels.OPTIONS))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(text.toString());
        Path nothing = folder.resolve("nothing.gguf");
        assertThatThrownBy(() -> LlamaModel.load(LlamaTestModels.library(), nothing, LlamaTestModels.OPTIONS))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(nothing.toString());
    }

    @Test
    void givenOptionsOutOfRange_whenMade_thenTheyAreRefused() {
        assertThatThrownBy(() -> new LlamaOptions(-1, 1, false)).hasMessageContaining("0 (the model's)");
        assertThatThrownBy(() -> new LlamaOptions(0, 0, false)).hasMessageContaining("1 to 512");
    }
}
