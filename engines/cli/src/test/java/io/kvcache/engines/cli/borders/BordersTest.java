package io.kvcache.engines.cli.borders;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/// The borders between modules and packages, as ARCHITECTURE.md draws them. Here, as this class path has all
/// modules but `spring-boot-starter` and `junit`, whose poms say what they may import, and which no other pom names.
@AnalyzeClasses(packages = "io.kvcache", importOptions = ProductionCode.class)
final class BordersTest {

    @ArchTest
    static final ArchRule CORE_DEPENDS_ON_THE_JDK_ONLY = classes()
            .that()
            .resideInAPackage("io.kvcache.core..")
            .should()
            .onlyDependOnClassesThat()
            .resideInAnyPackage("io.kvcache.core..", "java..", "org.jspecify..");

    @ArchTest
    static final ArchRule CORE_OPENS_NOTHING_AND_STARTS_NO_THREAD = noClasses()
            .that()
            .resideInAPackage("io.kvcache.core..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("java.nio.file..", "java.nio.channels..", "java.net..", "java.io..");

    @ArchTest
    static final ArchRule CORE_READS_NO_CLOCK = noClasses()
            .that()
            .resideInAPackage("io.kvcache.core..")
            .should()
            .callMethod(System.class, "nanoTime")
            .orShould()
            .callMethod(System.class, "currentTimeMillis")
            .orShould()
            .callMethod(Thread.class, "sleep", long.class)
            .orShould()
            .callMethod(Thread.class, "start");

    @ArchTest
    static final ArchRule SIBLINGS_DO_NOT_IMPORT_EACH_OTHER = slices().matching("io.kvcache.(tiers|gpu|transport)..")
            .should()
            .notDependOnEachOther()
            .allowEmptyShould(true);

    @ArchTest
    static final ArchRule SERVER_PLANNER_AND_BENCH_STAND_ABOVE = noClasses()
            .that()
            .resideInAnyPackage(
                    "io.kvcache.tiers..", "io.kvcache.gpu..", "io.kvcache.transport..", "io.kvcache.cluster..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.kvcache.server..", "io.kvcache.planner..", "io.kvcache.bench..")
            .allowEmptyShould(true);

    @ArchTest
    static final ArchRule CLUSTER_STANDS_ON_CORE_AND_TRANSPORT = noClasses()
            .that()
            .resideInAPackage("io.kvcache.cluster..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.kvcache.tiers..", "io.kvcache.gpu..", "io.kvcache.engines..");

    @ArchTest
    static final ArchRule ONLY_THE_SERVER_IMPORTS_CLUSTER = noClasses()
            .that()
            .resideOutsideOfPackages("io.kvcache.cluster..", "io.kvcache.server..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.kvcache.cluster..");

    @ArchTest
    static final ArchRule ONLY_SERVER_AND_BENCH_IMPORT_CARRIERS = noClasses()
            .that()
            .resideOutsideOfPackages(
                    "io.kvcache.transport.aeron..",
                    "io.kvcache.transport.ucx..",
                    "io.kvcache.server..",
                    "io.kvcache.bench..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.kvcache.transport.aeron..", "io.kvcache.transport.ucx..");

    @ArchTest
    static final ArchRule CARRIERS_STAND_ON_CORE_AND_TRANSPORT = noClasses()
            .that()
            .resideInAnyPackage("io.kvcache.transport.aeron..", "io.kvcache.transport.ucx..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.kvcache.transport.client..", "io.kvcache.transport.peer..");

    @ArchTest
    static final ArchRule AERON_STAYS_IN_ITS_CARRIER = noClasses()
            .that()
            .resideOutsideOfPackage("io.kvcache.transport.aeron..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.aeron..", "org.agrona..");

    @ArchTest
    static final ArchRule JGROUPS_STAYS_IN_CLUSTER = noClasses()
            .that()
            .resideOutsideOfPackage("io.kvcache.cluster..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("org.jgroups..");

    @ArchTest
    static final ArchRule THE_SERVER_SHIPS_WITHOUT_GPU_AND_ENGINES = noClasses()
            .that()
            .resideInAPackage("io.kvcache.server..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.kvcache.gpu..", "io.kvcache.engines..");

    @ArchTest
    static final ArchRule ENGINES_KNOW_THE_STORE_BY_ITS_FACE_ONLY = noClasses()
            .that()
            .resideInAPackage("io.kvcache.engines..")
            .and()
            .resideOutsideOfPackage("io.kvcache.engines.cli..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                    "io.kvcache.tiers..", "io.kvcache.gpu..", "io.kvcache.transport..", "io.kvcache.server..");

    @ArchTest
    static final ArchRule JLAMA_STAYS_IN_ITS_ADAPTER = noClasses()
            .that()
            .resideOutsideOfPackage("io.kvcache.engines.jlama..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("com.github.tjake..");

    @ArchTest
    static final ArchRule ONLY_BENCH_AND_THE_COMMANDS_OF_ENGINES_IMPORT_PLANNER = noClasses()
            .that()
            .resideOutsideOfPackages("io.kvcache.planner..", "io.kvcache.bench..", "io.kvcache.engines.cli..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.kvcache.planner..");

    @ArchTest
    static final ArchRule ONLY_THE_COMMANDS_OF_ENGINES_IMPORT_BENCH = noClasses()
            .that()
            .resideOutsideOfPackages("io.kvcache.bench..", "io.kvcache.engines.cli..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.kvcache.bench..");

    @ArchTest
    static final ArchRule NO_MODULE_IMPORTS_AN_ENGINE = noClasses()
            .that()
            .resideOutsideOfPackage("io.kvcache.engines..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.kvcache.engines..");

    @ArchTest
    static final ArchRule JMH_STAYS_IN_BENCH = noClasses()
            .that()
            .resideOutsideOfPackage("io.kvcache.bench..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("org.openjdk.jmh..");

    /// By the lists of bench/pom.xml.
    @ArchTest
    static final ArchRule THE_JAR_OF_HIT_RATES_HAS_ALL_THAT_IT_NEEDS = classes()
            .that()
            .resideInAnyPackage(
                    "io.kvcache.planner.baseline..",
                    "io.kvcache.bench.policy..",
                    "io.kvcache.planner.replay..",
                    "io.kvcache.planner.trace..")
            .should()
            .onlyDependOnClassesThat()
            .resideInAnyPackage(
                    "io.kvcache.planner.baseline..",
                    "io.kvcache.bench.policy..",
                    "io.kvcache.planner.replay..",
                    "io.kvcache.planner.trace..",
                    "io.kvcache.core..",
                    "java..",
                    "org.jspecify..",
                    "org.openjdk.jmh..",
                    "com.github.benmanes.caffeine..",
                    "tools.jackson..");

    @ArchTest
    static final ArchRule JCUDA_STAYS_IN_GPU_BRIDGE = noClasses()
            .that()
            .resideOutsideOfPackage("io.kvcache.gpu.cuda..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("jcuda..");

    @ArchTest
    static final ArchRule NO_CIRCLES_BETWEEN_PACKAGES =
            slices().matching("io.kvcache.(**)").should().beFreeOfCycles();

    @ArchTest
    static final ArchRule POLICIES_SEE_ONLY_RECORDS = noClasses()
            .that()
            .resideInAPackage("io.kvcache.core.policy")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.kvcache.core.tree", "io.kvcache.core.store", "io.kvcache.core.memory");
}
