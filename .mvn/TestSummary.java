import static java.util.stream.Collectors.joining;

import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;

/// Sums up the surefire reports of a build: java .mvn/TestSummary.java ROOT ok|failed [--json]
///
/// The last line is `N passed, N failed, N skipped`, on standard output; with `--json` that holds one JSON object,
/// and the words go to standard error. Exits with 1 when a test or the build failed, or none ran.

enum Outcome {
    PASSED,
    FAILED,
    SKIPPED
}

record Case(String name, Outcome outcome, String message) {}

void main(String[] arguments) throws Exception {
    Path root = Path.of(arguments[0]);
    boolean built = arguments[1].equals("ok");
    boolean json = arguments.length > 2 && arguments[2].equals("--json");
    List<Case> cases = readReports(root);
    if (!built && of(cases, Outcome.FAILED).isEmpty()) {
        cases.add(new Case("the build", Outcome.FAILED, "not for a test, see above"));
    }
    boolean good = of(cases, Outcome.FAILED).isEmpty() && !cases.isEmpty();
    PrintStream words = json ? System.err : System.out;
    words.println();
    describe(cases, words);
    if (json) {
        IO.println(toJson(cases, built));
    }
    System.exit(good ? 0 : 1);
}

List<Case> readReports(Path root) throws IOException, XMLStreamException {
    List<Case> cases = new ArrayList<>();
    try (Stream<Path> modules = Files.walk(root, 2)) { // engines has modules of its own
        for (Path module : modules.sorted().toList()) {
            Path folder = module.resolve("target", "surefire-reports");
            if (Files.isDirectory(folder)) {
                try (DirectoryStream<Path> reports = Files.newDirectoryStream(folder, "TEST-*.xml")) {
                    for (Path report : reports) {
                        readReport(report, cases);
                    }
                }
            }
        }
    }
    cases.sort(Comparator.comparing(Case::name));
    return cases;
}

void readReport(Path report, List<Case> cases) throws IOException, XMLStreamException {
    try (InputStream in = Files.newInputStream(report)) {
        XMLStreamReader xml = XMLInputFactory.newFactory().createXMLStreamReader(in);
        while (xml.hasNext()) {
            if (xml.next() == XMLStreamReader.START_ELEMENT && xml.getLocalName().equals("testcase")) {
                cases.add(readCase(xml));
            }
        }
    } catch (XMLStreamException torn) {
        // A JVM that dies in the middle of a test leaves half a report.
        cases.add(new Case(report.toString(), Outcome.FAILED, "unreadable report: " + torn.getMessage()));
    }
}

Case readCase(XMLStreamReader xml) throws XMLStreamException {
    String method = Objects.requireNonNullElse(xml.getAttributeValue(null, "name"), "");
    String type = xml.getAttributeValue(null, "classname");
    String name = method.isEmpty() || method.equals(type) ? type : type + "." + method;
    Outcome outcome = Outcome.PASSED;
    String message = "";
    while (!(xml.next() == XMLStreamReader.END_ELEMENT && xml.getLocalName().equals("testcase"))) {
        String element = xml.isStartElement() ? xml.getLocalName() : "";
        if (Set.of("failure", "error", "skipped").contains(element)) {
            outcome = element.equals("skipped") ? Outcome.SKIPPED : Outcome.FAILED;
            String attribute = xml.getAttributeValue(null, "message");
            message = (attribute == null ? xml.getElementText() : attribute).strip();
        }
    }
    return new Case(name, outcome, message);
}

void describe(List<Case> cases, PrintStream words) {
    for (Case failed : of(cases, Outcome.FAILED)) {
        words.println("FAILED " + failed.name());
        failed.message().lines().limit(12).forEach(line -> words.println("    " + line));
    }
    skipReasons(cases).forEach((reason, names) -> {
        words.println("SKIPPED %d: %s".formatted(names.size(), reason));
        names.forEach(name -> words.println("    " + name));
    });
    if (cases.isEmpty()) {
        words.println("No test ran.");
    }
    words.println("%d passed, %d failed, %d skipped"
            .formatted(
                    of(cases, Outcome.PASSED).size(),
                    of(cases, Outcome.FAILED).size(),
                    of(cases, Outcome.SKIPPED).size()));
}

String toJson(List<Case> cases, boolean built) {
    String failures = of(cases, Outcome.FAILED).stream()
            .map(failed -> "{\"test\":%s,\"message\":%s}".formatted(quote(failed.name()), quote(failed.message())))
            .collect(joining(","));
    String skips = skipReasons(cases).entrySet().stream()
            .map(skip -> "{\"reason\":%s,\"tests\":[%s]}"
                    .formatted(
                            quote(skip.getKey()),
                            skip.getValue().stream().map(this::quote).collect(joining(","))))
            .collect(joining(","));
    return "{\"build\":%s,\"passed\":%d,\"failed\":%d,\"skipped\":%d,\"failures\":[%s],\"skips\":[%s]}"
            .formatted(
                    quote(built ? "ok" : "failed"),
                    of(cases, Outcome.PASSED).size(),
                    of(cases, Outcome.FAILED).size(),
                    of(cases, Outcome.SKIPPED).size(),
                    failures,
                    skips);
}

Map<String, List<String>> skipReasons(List<Case> cases) {
    Map<String, List<String>> reasons = new TreeMap<>();
    for (Case skipped : of(cases, Outcome.SKIPPED)) {
        // A failed assumption comes as a stack trace, which begins with its type and its message; AssertJ's message
        // begins with an empty line, and has what the test says of it in brackets.
        String reason = skipped.message()
                .replaceFirst("^[\\w.]+TestAbortedException: *(Assumption failed: )?", "")
                .lines()
                .filter(line -> !line.isBlank())
                .findFirst()
                .orElse("no reason given")
                .replaceFirst("^assumption was not met due to: (?:\\[(.*)] *)?", "$1");
        reasons.computeIfAbsent(reason, _ -> new ArrayList<>()).add(skipped.name());
    }
    return reasons;
}

List<Case> of(List<Case> cases, Outcome outcome) {
    return cases.stream().filter(each -> each.outcome() == outcome).toList();
}

String quote(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
        switch (c) {
            case '"', '\\' -> quoted.append('\\').append(c);
            case '\n' -> quoted.append("\\n");
            default -> quoted.append(c < ' ' ? "\\u%04x".formatted((int) c) : String.valueOf(c));
        }
    }
    return quoted.append('"').toString();
}
