package io.kvcache.server.path;

import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class OperationPathsTest {

    @Test
    void embedded() throws Exception {
        run(EmbeddedPaths.class).forEach((name, path) -> {
            System.out.println("== " + name + " " + path.size());
            path.forEach(each -> System.out.println("   " + each));
        });
    }

    @SuppressWarnings("unchecked")
    private static Map<String, List<String>> run(Class<?> scenario) throws Exception {
        ClassLoader loader = new TracingClassLoader(OperationPathsTest.class.getClassLoader());
        Object traced = loader.loadClass(scenario.getName()).getConstructor().newInstance();
        return ((Supplier<Map<String, List<String>>>) traced).get();
    }
}
