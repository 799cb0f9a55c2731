package io.kvcache.spring;

import java.util.stream.StreamSupport;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.util.ClassUtils;

/// The auto-configurations that the starter lists.
final class AllOfTheStarter {

    static final Class<?>[] CLASSES = StreamSupport.stream(
                    ImportCandidates.load(AutoConfiguration.class, AllOfTheStarter.class.getClassLoader())
                            .spliterator(),
                    false)
            .filter(name -> name.startsWith("io.kvcache."))
            .map(name -> ClassUtils.resolveClassName(name, AllOfTheStarter.class.getClassLoader()))
            .toArray(Class<?>[]::new);

    private AllOfTheStarter() {}
}
