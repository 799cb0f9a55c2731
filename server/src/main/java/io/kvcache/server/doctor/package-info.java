/// Checks a machine for the resources that KVCache uses, with advice on each that is missing.
///
/// [io.kvcache.server.doctor.SystemCheck] runs all checks; a result is one line for people. The checks change
/// nothing.
@NullMarked
package io.kvcache.server.doctor;

import org.jspecify.annotations.NullMarked;
