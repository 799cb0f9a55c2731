package io.kvcache.core.identity;

/// Part of a prefix that a match needs, given by the attention that reads it.
public enum PartKind {
    /// Full attention: every block from the first to the last matched one.
    FULL,
    /// Sliding-window attention: the blocks that cover the last `window` tokens.
    WINDOW,
    /// Recurrent state (Mamba and its kin): the state after the last matched block alone.
    STATE
}
