package io.kvcache.server.resp;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/// A line of words as typed into telnet: parted by blanks; in double quotes with escapes, in single quotes as they are.
final class InlineParser {

    private final byte[] line;
    private final List<byte[]> words = new ArrayList<>();
    private int at;

    private InlineParser(byte[] line) {
        this.line = line;
    }

    /// @throws RespException when a quote is not closed
    static List<byte[]> split(byte[] line) throws RespException {
        InlineParser split = new InlineParser(line);
        while (split.skipBlanks()) {
            split.words.add(split.readWord());
        }
        return split.words;
    }

    private boolean skipBlanks() {
        while (at < line.length && isBlank(line[at])) {
            at++;
        }
        return at < line.length;
    }

    private byte[] readWord() throws RespException {
        ByteArrayOutputStream word = new ByteArrayOutputStream();
        while (at < line.length && !isBlank(line[at])) {
            byte each = line[at++];
            switch (each) {
                case '"' -> readDoubleQuoted(word);
                case '\'' -> readSingleQuoted(word);
                default -> word.write(each);
            }
        }
        return word.toByteArray();
    }

    private void readDoubleQuoted(ByteArrayOutputStream word) throws RespException {
        while (at < line.length) {
            byte each = line[at++];
            if (each == '"') {
                return;
            }
            word.write(each == '\\' && at < line.length ? readEscape() : each);
        }
        throw new RespException("unbalanced quotes in request");
    }

    private int readEscape() {
        byte each = line[at++];
        if (each == 'x' && at + 2 <= line.length && isHex(line[at]) && isHex(line[at + 1])) {
            at += 2;
            return HexFormat.fromHexDigit(line[at - 2]) << 4 | HexFormat.fromHexDigit(line[at - 1]);
        }
        return switch (each) {
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'b' -> '\b';
            case 'a' -> 7;
            default -> each;
        };
    }

    private void readSingleQuoted(ByteArrayOutputStream word) throws RespException {
        while (at < line.length) {
            byte each = line[at++];
            if (each == '\'') {
                return;
            }
            word.write(each);
        }
        throw new RespException("unbalanced quotes in request");
    }

    private static boolean isHex(byte each) {
        return HexFormat.isHexDigit(each);
    }

    private static boolean isBlank(byte each) {
        return each == ' ' || each == '\t' || each == '\r' || each == '\n' || each == 0;
    }
}
