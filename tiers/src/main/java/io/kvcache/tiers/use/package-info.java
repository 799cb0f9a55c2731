/// What a store is used for: uses on their way to their evaluation, and how much more memory
/// would find.
///
/// Requests leave a note and go on; what is made of it is made on other threads. May not be
/// imported by the store itself, which knows listeners alone.
@NullMarked
package io.kvcache.tiers.use;

import org.jspecify.annotations.NullMarked;
