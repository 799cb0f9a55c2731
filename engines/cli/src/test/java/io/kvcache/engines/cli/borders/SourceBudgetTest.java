package io.kvcache.engines.cli.borders;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.LineMap;
import com.sun.source.tree.MethodTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
import com.sun.source.util.Trees;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/// What the house weighs beside what `.ci/budgets.txt` allows.
@AnalyzeClasses(packages = "io.kvcache", importOptions = ProductionCode.class)
final class SourceBudgetTest {

    private static final Path REPOSITORY = Path.of("../..").toAbsolutePath().normalize();
    private static final Path BUDGETS = REPOSITORY.resolve(".ci/budgets.txt");

    private static final int LONG_METHOD_LINES = 40;
    private static final int LONG_FILE_LINES = 800;

    /// How far a figure may lie below its budget, so that what was saved is not spent again unseen.
    private static final double MAX_SLACK = 0.03;

    private static final int MIN_SLACK = 5;

    private static final Pattern COMMENT_OR_STRING =
            Pattern.compile("\"\"\"(?s:.*?)\"\"\"|/\\*(?s:.*?)\\*/|//[^\\n]*|\"(?:\\\\.|[^\"\\\\\\n])*\"");
    private static final Pattern TYPE_NAME = Pattern.compile("\\b[A-Z]\\w*\\b");
    private static final Pattern PUBLIC_TYPE =
            Pattern.compile("(?m)^public (?:\\w+ |non-sealed )*(?:class|interface|record|enum|@interface) ");

    /// Words of a dialect that docs/internals/style.md asks to replace, in comments and messages.
    private static final Pattern DIALECT = Pattern.compile(
            "(?i)\\b(?:nobody|whoever|somebody|(?:tells?|told) of|so (?:many|much)|such an? |whether [^.]{1,60}? is of)\\b");

    private static Map<String, Integer> figures = Map.of();
    private static List<String> uncalled = List.of();

    /// One main source file.
    private record Source(Path file, String module, String text) {

        static Source of(Path file) {
            try {
                String inside = REPOSITORY.relativize(file).toString();
                return new Source(file, inside.substring(0, inside.indexOf('/')), Files.readString(file));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        String name() {
            return file.getFileName().toString().replace(".java", "");
        }

        int lines() {
            return (int) text.lines().count();
        }
    }

    private static void count(JavaClasses classes) throws IOException {
        if (!figures.isEmpty()) {
            return;
        }
        List<Source> sources = sources();
        Map<String, Integer> counted = new TreeMap<>();
        for (Source source : sources) {
            for (String part : List.of(source.module, "all")) {
                counted.merge("files of " + part, 1, Integer::sum);
                counted.merge("lines of " + part, source.lines(), Integer::sum);
            }
            counted.merge("public types", matches(PUBLIC_TYPE, source.text), Integer::sum);
            counted.merge("words of the dialect", dialect(source.text), Integer::sum);
            counted.merge(
                    "files over " + LONG_FILE_LINES + " lines", source.lines() > LONG_FILE_LINES ? 1 : 0, Integer::sum);
        }
        counted.put("classes with one user", classesWithOneUser(sources));
        counted.put("methods over " + LONG_METHOD_LINES + " lines", longMethods(sources));
        uncalled = uncalledMethods(classes);
        counted.put("methods without a caller", uncalled.size());
        figures = counted;
    }

    @ArchTest
    static void givenFigures_whenComparedWithTheirBudgets_thenNoneIsAbove(JavaClasses classes) throws IOException {
        count(classes);
        Map<String, Integer> budgets = budgets();
        assertThat(budgets.keySet()).as("figures of %s", BUDGETS).containsExactlyInAnyOrderElementsOf(figures.keySet());
        assertThat(figures.entrySet())
                .as("make it smaller, or raise the budget in .ci/budgets.txt and say why: %s%n%s", figures, uncalled)
                .allSatisfy(figure -> assertThat(figure.getValue())
                        .as(figure.getKey())
                        .isLessThanOrEqualTo(budgets.get(figure.getKey())));
    }

    @ArchTest
    static void givenABudget_whenItsFigureHasFallen_thenTheBudgetFallsToo(JavaClasses classes) throws IOException {
        count(classes);
        assertThat(budgets().entrySet())
                .as("lower the budget in .ci/budgets.txt to what there is now: %s", figures)
                .allSatisfy(budget -> {
                    int figure = figures.getOrDefault(budget.getKey(), 0);
                    int slack = Math.max(MIN_SLACK, (int) (figure * MAX_SLACK));
                    assertThat(budget.getValue()).as(budget.getKey()).isLessThanOrEqualTo(figure + slack);
                });
    }

    private static Map<String, Integer> budgets() throws IOException {
        Map<String, Integer> budgets = new TreeMap<>();
        for (String line : Files.readAllLines(BUDGETS)) {
            if (!line.isBlank() && !line.startsWith("#")) {
                int end = line.lastIndexOf(' ');
                budgets.put(line.substring(0, end).strip(), Integer.parseInt(line.substring(end + 1)));
            }
        }
        return budgets;
    }

    private static List<Source> sources() throws IOException {
        List<Source> found = new ArrayList<>();
        try (Stream<Path> files = Files.walk(REPOSITORY)) {
            files.filter(file -> file.toString().contains("/src/main/java/")
                            && file.toString().endsWith(".java"))
                    .filter(file -> !file.endsWith("package-info.java") && !file.endsWith("module-info.java"))
                    .sorted()
                    .forEach(file -> found.add(Source.of(file)));
        }
        assertThat(found).hasSizeGreaterThan(100);
        return found;
    }

    private static int matches(Pattern pattern, String text) {
        return (int) pattern.matcher(text).results().count();
    }

    private static int dialect(String text) {
        return COMMENT_OR_STRING
                .matcher(text)
                .results()
                .mapToInt(each -> matches(DIALECT, each.group()))
                .sum();
    }

    /// Classes of files of their own whose names one other file has.
    private static int classesWithOneUser(List<Source> sources) {
        Map<String, Set<Path>> users = new HashMap<>();
        for (Source source : sources) {
            String code = COMMENT_OR_STRING.matcher(source.text).replaceAll(" ");
            TYPE_NAME
                    .matcher(code)
                    .results()
                    .forEach(name -> users.computeIfAbsent(name.group(), _ -> new HashSet<>())
                            .add(source.file));
        }
        return (int) sources.stream()
                .filter(source -> users.getOrDefault(source.name(), Set.of()).stream()
                                .filter(user -> !user.equals(source.file))
                                .count()
                        == 1)
                .count();
    }

    /// Methods that neither production code calls, nor a framework by an annotation, nor an embedder.
    private static List<String> uncalledMethods(JavaClasses classes) {
        Set<String> api = PublicApiTest.types();
        return classes.stream()
                .filter(type ->
                        !api.contains(type.getName()) && !type.getPackageName().endsWith(".jmh_generated"))
                .flatMap(type -> type.getMethods().stream())
                .filter(method -> !isCalled(method))
                .map(JavaMethod::getFullName)
                .sorted()
                .toList();
    }

    private static boolean isCalled(JavaMethod method) {
        return method.getName().equals("main")
                || method.getModifiers().contains(JavaModifier.SYNTHETIC)
                || method.getModifiers().contains(JavaModifier.BRIDGE)
                || !method.getAnnotations().isEmpty()
                || method.getOwner().isEnum()
                || isComponent(method)
                || !method.getAccessesToSelf().isEmpty()
                || !method.getReferencesToSelf().isEmpty()
                || overrides(method);
    }

    private static boolean isComponent(JavaMethod method) {
        return method.getOwner().isRecord()
                && method.getRawParameterTypes().isEmpty()
                && method.getOwner().tryGetField(method.getName()).isPresent();
    }

    private static boolean overrides(JavaMethod method) {
        return Stream.concat(
                        method.getOwner().getAllRawSuperclasses().stream(),
                        method.getOwner().getAllRawInterfaces().stream())
                .flatMap(type -> type.getMethods().stream())
                .anyMatch(above -> above.getName().equals(method.getName())
                        && above.getRawParameterTypes().size()
                                == method.getRawParameterTypes().size());
    }

    private static int longMethods(List<Source> sources) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        int[] count = {0};
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            JavacTask task = (JavacTask) compiler.getTask(
                    null,
                    files,
                    _ -> {},
                    List.of("-proc:none"),
                    null,
                    files.getJavaFileObjectsFromPaths(
                            sources.stream().map(Source::file).toList()));
            SourcePositions positions = Trees.instance(task).getSourcePositions();
            for (CompilationUnitTree unit : task.parse()) {
                LineMap lines = unit.getLineMap();
                new TreeScanner<@Nullable Void, @Nullable Void>() {
                    @Override
                    public @Nullable Void visitMethod(MethodTree method, @Nullable Void unused) {
                        long first = lines.getLineNumber(positions.getStartPosition(unit, method));
                        long last = lines.getLineNumber(positions.getEndPosition(unit, method));
                        count[0] += last - first >= LONG_METHOD_LINES ? 1 : 0;
                        return super.visitMethod(method, unused);
                    }
                }.scan(unit, null);
            }
        }
        return count[0];
    }
}
