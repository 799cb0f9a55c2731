package io.kvcache.server.path;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeTransform;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.security.cert.Certificate;

/// Loads the project's classes anew, each method of which tells [PathRecorder] that it is entered.
final class TracingClassLoader extends ClassLoader {

    private static final String PROJECT = "io.kvcache.";
    private static final ClassDesc RECORDER = ClassDesc.of(PathRecorder.class.getName());
    private static final MethodTypeDesc ENTER = MethodTypeDesc.ofDescriptor("(Ljava/lang/String;)V");

    TracingClassLoader(ClassLoader parent) {
        super(parent);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.startsWith(PROJECT) || name.equals(PathRecorder.class.getName())) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> known = findLoadedClass(name);
            return known == null ? define(name) : known;
        }
    }

    private Class<?> define(String name) throws ClassNotFoundException {
        Class<?> untraced = getParent().loadClass(name);
        try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            byte[] traced = traced(in.readAllBytes(), name);
            CodeSource source = untraced.getProtectionDomain().getCodeSource();
            var domain =
                    new ProtectionDomain(new CodeSource(source.getLocation(), (Certificate[]) null), null, this, null);
            return defineClass(name, traced, 0, traced.length, domain);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static byte[] traced(byte[] original, String name) {
        ClassFile format = ClassFile.of();
        CodeTransform atEntry = CodeTransform.ofStateful(() -> new EntryCall(name));
        return format.transformClass(format.parse(original), ClassTransform.transformingMethodBodies(atEntry));
    }

    /// Puts the call before the first instruction of a method.
    private static final class EntryCall implements CodeTransform {

        private final String name;

        EntryCall(String name) {
            this.name = name;
        }

        @Override
        public void atStart(CodeBuilder builder) {
            builder.ldc(name).invokestatic(RECORDER, "enter", ENTER);
        }

        @Override
        public void accept(CodeBuilder builder, CodeElement element) {
            builder.with(element);
        }
    }
}
