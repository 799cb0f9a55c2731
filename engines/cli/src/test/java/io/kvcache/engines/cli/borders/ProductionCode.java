package io.kvcache.engines.cli.borders;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;

/// Leaves out tests and test-jars, wherever Maven takes them from.
final class ProductionCode implements ImportOption {

    @Override
    public boolean includes(Location location) {
        return !location.contains("test-classes") && !location.contains("-tests.jar");
    }
}
