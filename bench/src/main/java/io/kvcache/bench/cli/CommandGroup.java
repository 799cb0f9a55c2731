package io.kvcache.bench.cli;

/// Headings under which `help` lists the commands, in this order.
enum CommandGroup {
    RUN("Run"),
    USE("Use"),
    PLAN("Plan"),
    CHECK("Check"),
    DEVELOP("Develop");

    private final String heading;

    CommandGroup(String heading) {
        this.heading = heading;
    }

    String heading() {
        return heading;
    }
}
