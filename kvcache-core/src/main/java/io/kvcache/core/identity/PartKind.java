package io.kvcache.core.identity;

/// What a match needs of a part, because of the attention that reads it.
public enum PartKind {
    /// Full attention: every block from the first to the last matched one.
    FULL,
    /// Sliding-window attention: the blocks that cover the last `window` tokens.
    WINDOW,
    /// Recurrent state (Mamba and its kin): the state after the last matched block alone.
    STATE
}
