package io.kvcache.bench.pack;

import java.util.Locale;
import java.util.regex.Pattern;

/// What becomes of a file of one jar in a jar of many.
enum JarEntryPolicy {
    /// Goes in under its name; jars that both have it must agree on every byte.
    COPY,
    /// Goes in under a folder of its jar's name: each jar has its own licence.
    KEEP_APART,
    /// Lists things a line, and each jar lists its own: all lines go in.
    JOIN,
    /// Says what a jar was made from, and often under which licence; of two with one name the first goes in, as nobody
    /// runs it.
    FIRST,
    /// Is true of its jar alone: a manifest, a signature, an index, a module's border.
    DROP;

    private static final Pattern OF_ITS_JAR_ALONE = Pattern.compile("META-INF/(MANIFEST\\.MF|INDEX\\.LIST|SIG-.*"
            + "|[^/]+\\.(SF|RSA|DSA|EC))|(META-INF/versions/\\d+/)?module-info\\.class");

    /// Of all of a project's jars, at the root or in `META-INF`.
    private static final Pattern LEGAL = Pattern.compile("(META-INF/)?[^/]*(LICENSE|LICENCE|NOTICE|COPYING)[^/]*");

    private static final Pattern LISTS = Pattern.compile("META-INF/(services/.+|[^/]+\\.versions\\.properties)");

    private static final Pattern ORIGINS = Pattern.compile("META-INF/maven/.*");

    /// @param name of a file in a jar
    static JarEntryPolicy of(String name) {
        if (OF_ITS_JAR_ALONE.matcher(name).matches()) {
            return DROP;
        } else if (LEGAL.matcher(name.toUpperCase(Locale.ROOT)).matches() && !name.endsWith(".class")) {
            return KEEP_APART;
        } else if (LISTS.matcher(name).matches()) {
            return JOIN;
        }
        return ORIGINS.matcher(name).matches() ? FIRST : COPY;
    }
}
