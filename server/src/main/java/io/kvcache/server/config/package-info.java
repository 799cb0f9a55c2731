/// The settings, with defaults that work on any machine: one record a component, and the reader that fills them
/// from a file, the environment and the command line.
@NullMarked
package io.kvcache.server.config;

import org.jspecify.annotations.NullMarked;
