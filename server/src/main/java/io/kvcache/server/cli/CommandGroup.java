package io.kvcache.server.cli;

/// Headings under which `help` lists the commands, in this order.
public enum CommandGroup {
    /// Starts something that serves or shows.
    RUN("Run"),
    /// Talks to a server that runs.
    USE("Use"),
    /// Sizes a deployment.
    PLAN("Plan"),
    /// Examines a machine, a disk, settings or this program.
    CHECK("Check"),
    /// Builds and packs.
    DEVELOP("Develop");

    private final String heading;

    CommandGroup(String heading) {
        this.heading = heading;
    }

    String heading() {
        return heading;
    }
}
