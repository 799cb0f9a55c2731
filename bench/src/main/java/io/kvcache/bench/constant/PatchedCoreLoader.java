package io.kvcache.bench.constant;

import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/// The classes of this program once more, with one constant of the core changed.
///
/// Constants are compiled into whatever uses them, so the packages that have any are compiled as a
/// whole, into a folder that comes before everything else in a class loader of its own. What runs
/// there shares the JDK alone with what is here. Whoever else names a constant keeps the value that
/// it was compiled with: no other package may.
///
/// **Ownership.** Has a folder for temporary files until it is closed.
final class PatchedCoreLoader implements AutoCloseable {

    static final List<String> PACKAGES = List.of("policy", "store", "tier");
    static final Path CORE = Path.of("io", "kvcache", "core");

    private final Path folder;
    private final URLClassLoader classes;

    private PatchedCoreLoader(Path folder, URLClassLoader classes) {
        this.folder = folder;
        this.classes = classes;
    }

    /// The source that has a constant.
    ///
    /// @param sources the folder of the core's main sources
    /// @throws IOException when the folder is not that, or its sources are of another version
    static String readSource(Path sources, TunableConstant constant) throws IOException {
        Path file = sources.resolve(CORE).resolve(constant.file() + ".java");
        if (!Files.isRegularFile(file)) {
            throw new IOException(
                    file + " is not here: --sources must name the folder kvcache-core/src/main/java of a checkout");
        }
        String source = Files.readString(file);
        try {
            constant.valueIn(source);
        } catch (IllegalArgumentException other) {
            throw new IOException(
                    other.getMessage() + ": --sources must name sources of this program's version, and not " + sources,
                    other);
        }
        return source;
    }

    /// Compiles.
    ///
    /// @throws IOException when the sources are not there, or nothing can compile them
    static PatchedCoreLoader compileWith(Path sources, TunableConstant constant, double factor) throws IOException {
        String changed = constant.withFactor(readSource(sources, constant), factor);
        Path folder = Files.createTempDirectory("kvcache-constant");
        try {
            Path patch = folder.resolve("source").resolve(CORE).resolve(constant.file() + ".java");
            Files.createDirectories(patch.getParent());
            Files.writeString(patch, changed);
            Path out = Files.createDirectories(folder.resolve("classes"));
            compile(sources, constant, patch, out);
            List<URL> path = new ArrayList<>(List.of(out.toUri().toURL()));
            for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
                path.add(Path.of(entry).toUri().toURL());
            }
            ClassLoader jdk = ClassLoader.getPlatformClassLoader();
            return new PatchedCoreLoader(folder, new URLClassLoader(path.toArray(URL[]::new), jdk));
        } catch (IOException | RuntimeException e) {
            remove(folder);
            throw e;
        }
    }

    private static void compile(Path sources, TunableConstant constant, Path patch, Path out) throws IOException {
        JavaCompiler compiler = compiler();
        List<Path> files = new ArrayList<>(List.of(patch));
        for (String each : PACKAGES) {
            try (Stream<Path> all = Files.list(sources.resolve(CORE).resolve(each))) {
                all.filter(file -> file.toString().endsWith(".java"))
                        .filter(file -> !file.endsWith(constant.file() + ".java"))
                        .forEach(files::add);
            }
        }
        List<String> options =
                List.of("-d", out.toString(), "-cp", System.getProperty("java.class.path"), "-proc:none", "-nowarn");
        StringWriter messages = new StringWriter();
        try (StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null)) {
            boolean done = compiler.getTask(
                            messages, manager, null, options, null, manager.getJavaFileObjectsFromPaths(files))
                    .call();
            if (!done) {
                throw new IOException("with another " + constant.label() + " the core does not compile: " + messages);
            }
        }
    }

    private static JavaCompiler compiler() throws IOException {
        @Nullable JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        if (compiler == null) {
            throw new IOException("this JVM has no compiler: it takes a JDK to change a constant");
        }
        return compiler;
    }

    /// Calls a static method of one of its classes; parameters and result are of the JDK.
    Object callStatic(Class<?> type, String method, List<Class<?>> types, Object... arguments) throws IOException {
        try {
            return classes.loadClass(type.getName())
                    .getMethod(method, types.toArray(Class<?>[]::new))
                    .invoke(null, arguments);
        } catch (InvocationTargetException e) {
            throw new IOException("in a core with another constant: " + e.getCause(), e);
        } catch (ReflectiveOperationException e) {
            throw new IOException("in a core with another constant there is no " + type + "." + method, e);
        }
    }

    @Override
    public void close() throws IOException {
        classes.close();
        remove(folder);
    }

    private static void remove(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        }
    }
}
