package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/// llama.cpp's library in this process, found to be one that this adapter knows.
///
/// A build does not describe its layouts. So before any other use of a library, its functions are looked up and its
/// [structs of parameters][LlamaParameterStruct] compared. Before a model is used, so is the
/// [state][LlamaStateLayout] of a sequence.
///
/// It stays loaded for as long as the process lives: threads of its own may be in it.
///
/// **Threads.** Any.
public final class LlamaLibrary {

    private static final Logger LOG = System.getLogger("io.kvcache.engines.llamacpp.native");

    /// `GGML_LOG_LEVEL_ERROR`.
    private static final int ERROR = 4;

    /// No line of llama.cpp's is longer.
    private static final int MAX_LINE_BYTES = 1 << 16;

    /// The build whose interface this adapter knows, by llama.cpp's own tag.
    public static final String SUPPORTED = "b4916";

    /// Resource folder of the libraries in `de.kherud:llama`.
    private static final String RESOURCES = "/de/kherud/llama/";

    private final String name;
    private final String digest;
    private final LlamaApi api;

    private LlamaLibrary(String name, String digest, SymbolLookup found) {
        this.name = name;
        this.digest = digest;
        api = new LlamaApi(found);
        if (!api.missing().isEmpty()) {
            throw new UnsupportedLlamaException(name, "it lacks " + String.join(", ", api.missing()));
        }
        LlamaParameterStruct.MODEL.check(name, api::modelDefaults);
        LlamaParameterStruct.CONTEXT.check(name, api::contextDefaults);
        api.initialize(logCallback());
    }

    /// Loads the library that the user names, such as `libllama.so`.
    ///
    /// @throws IOException when it cannot be read or is not a library for this machine
    /// @throws UnsupportedLlamaException when it is not as this adapter knows llama.cpp
    public static LlamaLibrary open(Path file) throws IOException {
        return open(file.toAbsolutePath(), file.toString());
    }

    @SuppressWarnings("restricted") // Loading a library is what this is about.
    private static LlamaLibrary open(Path file, String name) throws IOException {
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            throw new IOException(name + " is not a readable file, so it cannot be a library of llama.cpp");
        }
        String digest = LlamaFingerprint.digest(file);
        try {
            return new LlamaLibrary(name, digest, SymbolLookup.libraryLookup(file, Arena.global()));
        } catch (IllegalArgumentException refused) {
            throw new IOException(
                    name + " cannot be loaded as a library for this machine; it may need others, such as libgomp.so.1",
                    refused);
        }
    }

    /// Loads the library in the jar of `de.kherud:llama`, which the user has added to the class path.
    ///
    /// It loads a copy in a folder that no other user can read, and deletes that folder afterwards.
    ///
    /// @throws IOException when the class path lacks that jar, or the jar has no library for this machine
    /// @throws UnsupportedLlamaException when it is not as this adapter knows llama.cpp
    public static LlamaLibrary bundled() throws IOException {
        String resource = RESOURCES + platform();
        Path folder = Files.createTempDirectory("kvcache-llamacpp");
        Path file = folder.resolve("libjllama.so");
        try (InputStream in = LlamaLibrary.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw new IOException(
                        "the class path has no " + resource + ": add de.kherud:llama:4.2.0, or name a library");
            }
            Files.copy(in, file);
            return open(file, "the library in de.kherud:llama");
        } finally {
            for (Path left : List.of(file, folder)) {
                Files.deleteIfExists(left);
            }
        }
    }

    /// Returns whether the class path has the jar that brings a library for this machine.
    public static boolean isBundled() {
        return LlamaLibrary.class.getResource(RESOURCES + platform()) != null;
    }

    private static String platform() {
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        return System.getProperty("os.name") + "/" + (machine.equals("amd64") ? "x86_64" : machine) + "/libjllama.so";
    }

    @SuppressWarnings("restricted") // The signature is ggml_log_callback.
    private static MemorySegment logCallback() {
        try {
            MethodHandle target = MethodHandles.lookup()
                    .findStatic(
                            LlamaLibrary.class,
                            "log",
                            MethodType.methodType(void.class, int.class, MemorySegment.class, MemorySegment.class));
            return Linker.nativeLinker()
                    .upcallStub(target, FunctionDescriptor.ofVoid(JAVA_INT, ADDRESS, ADDRESS), Arena.global());
        } catch (ReflectiveOperationException impossible) {
            throw new LinkageError("this class has the method", impossible);
        }
    }

    /// Called by the library, on any thread. Whatever is thrown here would end the process.
    @SuppressWarnings({"restricted", "unused"}) // The text ends with a zero; called by name, with what a user gave.
    private static void log(int level, MemorySegment text, MemorySegment user) {
        try {
            String line = text.reinterpret(MAX_LINE_BYTES).getString(0).strip();
            if (!line.isEmpty()) {
                LOG.log(level == ERROR ? Level.WARNING : Level.DEBUG, line);
            }
        } catch (RuntimeException unreadable) {
            LOG.log(Level.DEBUG, "a line of llama.cpp's cannot be read", unreadable);
        }
    }

    /// Returns the identity of this build and compilation.
    public String build() {
        return SUPPORTED + " " + digest.substring(0, 16);
    }

    LlamaApi api() {
        return api;
    }

    /// Returns the name for messages.
    @Override
    public String toString() {
        return name;
    }

    /// A library, or a model in it, is not as this adapter knows llama.cpp. Nothing was done with it.
    public static final class UnsupportedLlamaException extends RuntimeException {

        private static final long serialVersionUID = 1;

        /// @param where the library or the model
        /// @param found how it differs
        UnsupportedLlamaException(String where, String found) {
            super("%s is not as this adapter, which is made for llama.cpp %s, knows it: %s"
                    .formatted(where, LlamaLibrary.SUPPORTED, found));
        }
    }
}
