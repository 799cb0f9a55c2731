package io.kvcache.bench.report;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/// Chart.js, from the jar that the build took it from: `org.webjars.npm:chart.js`, which is the package of
/// that name and version of the npm registry.
///
/// @param version as the jar says it
/// @param script to be put into a page
/// @param licence its text
record ChartLibrary(String version, String script, String licence) {

    private static final String PROPERTIES_PATH = "META-INF/maven/org.webjars.npm/chart.js/pom.properties";
    private static final String RESOURCE_PATH = "META-INF/resources/webjars/chart.js/";

    static ChartLibrary load() throws IOException {
        Properties about = new Properties();
        about.load(new StringReader(readResource(PROPERTIES_PATH)));
        String version = about.getProperty("version");
        String script = readResource(RESOURCE_PATH + version + "/dist/chart.umd.min.js");
        // The browser's tools would look for the map beside the page.
        int map = script.indexOf("//# sourceMappingURL");
        return new ChartLibrary(
                version,
                map < 0 ? script : script.substring(0, map),
                readResource(RESOURCE_PATH + version + "/LICENSE.md"));
    }

    /// A file of the class path.
    static String readResource(String resource) throws IOException {
        try (InputStream from = ChartLibrary.class.getClassLoader().getResourceAsStream(resource)) {
            if (from == null) {
                throw new FileNotFoundException("not on the class path: " + resource);
            }
            return new String(from.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
