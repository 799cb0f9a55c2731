package io.kvcache.server.path;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/// The classes that an operation crosses do not grow in number, and a request digests its key once.
/// docs/internals/paths.md has the lists, which this test prints.
final class OperationPathsTest {

    /// Collaborators by the file that they stand in, and all classes, as docs/internals/paths.md has them; two or
    /// three more where the server's threads may do something else in between.
    private static final Map<String, Limit> LIMITS = Map.of(
            "embedded put", new Limit(23, 54),
            "embedded host hit", new Limit(11, 24),
            "RESP SET", new Limit(42, 77),
            "RESP GET", new Limit(26, 60));

    private record Limit(int collaborators, int all) {}

    @Test
    void givenOperations_whenTraced_thenTheyCrossNoMoreClassesThanBefore() throws Exception {
        Map<String, List<String>> paths = new HashMap<>();
        paths.putAll(run(EmbeddedPaths.class));
        paths.putAll(run(RespPaths.class));
        assertThat(paths).containsOnlyKeys(LIMITS.keySet());
        for (Map.Entry<String, List<String>> each : paths.entrySet()) {
            List<String> all = each.getValue().stream()
                    .filter(name -> !name.startsWith(PathRecorder.class.getPackageName()))
                    .toList();
            List<String> collaborators =
                    all.stream().filter(OperationPathsTest::isCollaborator).toList();
            List<String> files = collaborators.stream()
                    .map(OperationPathsTest::outermost)
                    .distinct()
                    .toList();
            print(each.getKey(), files, collaborators, all);
            Limit limit = Objects.requireNonNull(LIMITS.get(each.getKey()));
            assertThat(files).as(each.getKey()).hasSizeLessThanOrEqualTo(limit.collaborators);
            assertThat(all).as(each.getKey()).hasSizeLessThanOrEqualTo(limit.all);
        }
    }

    /// The class whose file a class stands in: a nested class is part of the concept of its outer one.
    private static String outermost(String name) {
        int nested = name.indexOf('$');
        return nested < 0 ? name : name.substring(0, nested);
    }

    private static void print(String operation, List<String> files, List<String> collaborators, List<String> all) {
        System.out.println("path: " + operation + ", " + files.size() + " collaborators by file, "
                + collaborators.size() + " with nested ones, of " + all.size() + " classes: "
                + String.join(", ", shortNames(collaborators)) + "; values and functions: "
                + String.join(
                        ", ",
                        shortNames(all.stream()
                                .filter(name -> !collaborators.contains(name))
                                .toList())));
    }

    private static List<String> shortNames(List<String> names) {
        return names.stream()
                .map(name -> name.substring(name.lastIndexOf('.') + 1).replace('$', '.'))
                .toList();
    }

    /// Returns whether a class has state and is not a value: not an interface, a record, an enum, or functions
    /// alone.
    private static boolean isCollaborator(String name) {
        try {
            Class<?> type = Class.forName(name, false, OperationPathsTest.class.getClassLoader());
            return !type.isInterface()
                    && !type.isRecord()
                    && !type.isEnum()
                    && Arrays.stream(type.getDeclaredFields())
                            .anyMatch(field -> !Modifier.isStatic(field.getModifiers()));
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, List<String>> run(Class<?> scenario) throws Exception {
        ClassLoader loader = new TracingClassLoader(OperationPathsTest.class.getClassLoader());
        Object traced = loader.loadClass(scenario.getName()).getConstructor().newInstance();
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader); // where ServiceLoader looks for policies
        try {
            return ((Supplier<Map<String, List<String>>>) traced).get();
        } finally {
            thread.setContextClassLoader(before);
        }
    }
}
