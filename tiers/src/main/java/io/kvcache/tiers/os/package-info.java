/// The operating system, as the packages beside this one need it: C functions through `java.lang.foreign`, the
/// names of its errors, and space for files. Internal to the module, though the compiler cannot say so.
///
/// [io.kvcache.tiers.os.Libc] binds the functions that [io.kvcache.tiers.os.LibcFunction] lists.
///
/// May import the JDK only.
@NullMarked
package io.kvcache.tiers.os;

import org.jspecify.annotations.NullMarked;
