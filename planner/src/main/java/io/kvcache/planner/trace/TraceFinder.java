package io.kvcache.planner.trace;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;

/// Finds the published traces by their short name.
///
/// Looks in the folder that the system property or environment variable `KVCACHE_TRACES` names, else in
/// `shared/traces` beside or above the working directory.
public final class TraceFinder {

    /// System property and environment variable that name the folder.
    public static final String FOLDER_VARIABLE = "KVCACHE_TRACES";

    /// The trace that needs no file.
    private static final String GENERATED = "generated:1";

    private final Path start;
    private final UnaryOperator<String> settings;

    /// Starts from the working directory, with the settings of this process.
    public TraceFinder() {
        this(Path.of("").toAbsolutePath(), TraceFinder::setting);
    }

    /// @param start where the walk up begins
    /// @param settings value of a setting, or an empty string
    TraceFinder(Path start, UnaryOperator<String> settings) {
        this.start = start;
        this.settings = settings;
    }

    /// The file of a published trace: `conversation`, `synthetic`.
    public Optional<Path> find(String name) {
        return folder().map(folder -> folder.resolve(name + "_trace.jsonl")).filter(Files::isRegularFile);
    }

    /// Returns those published traces of some that are here; a generated one where none is.
    public List<String> findOrGenerated(List<String> published) {
        List<String> found =
                published.stream().filter(name -> find(name).isPresent()).toList();
        return found.isEmpty() ? List.of(GENERATED) : found;
    }

    /// The folder that holds the traces, if there is one.
    public Optional<Path> folder() {
        String named = settings.apply(FOLDER_VARIABLE);
        if (!named.isEmpty()) {
            return Optional.of(Path.of(named)).filter(Files::isDirectory);
        }
        for (Path at = start; at != null; at = at.getParent()) {
            Path candidate = at.resolve("shared").resolve("traces");
            if (Files.isDirectory(candidate)) {
                return Optional.of(candidate);
            }
        }
        return Optional.empty();
    }

    private static String setting(String name) {
        String property = System.getProperty(name, "");
        return property.isEmpty() ? System.getenv().getOrDefault(name, "") : property;
    }
}
