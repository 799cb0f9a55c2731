package io.kvcache.core;

/// Outcome of putting a run of blocks.
///
/// @param stored newly stored
/// @param present here already, or being written by another caller
/// @param last outcome of the block that ended the run, or of the last one
public record PutSummary(int stored, int present, PutOutcome last) {

    /// Leading blocks of the run that are here or will be.
    public int accepted() {
        return stored + present;
    }
}
