/// Escapes text for log lines.
///
/// Text in a line may come from the network. Characters that control a terminal, break lines or change the text
/// direction are escaped, so that the text can neither forge a line nor send commands to a terminal.
enum LogText {
    /// Maximum length of a message and of the value of a field, in bytes.
    static let maximumLength = 4096

    /// Returns the text, cut if it is too long.
    static func cut(_ text: String) -> String {
        guard text.utf8.count > maximumLength else { return text }
        return String(decoding: text.utf8.prefix(maximumLength), as: UTF8.self) + "…"
    }

    /// Returns the text with escapes for backslashes and control characters.
    static func escaped(_ text: String, quotes: Bool = false) -> String {
        guard text.unicodeScalars.contains(where: { $0 == "\\" || quotes && $0 == "\"" || isControl($0) }) else {
            return text
        }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"" where quotes: escaped += "\\\""
            case "\n": escaped += "\\n"
            case "\r": escaped += "\\r"
            case "\t": escaped += "\\t"
            case _ where isControl(scalar): escaped += "\\u{" + String(scalar.value, radix: 16) + "}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Returns a value of a field: in quotation marks if its end would be ambiguous.
    static func value(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.unicodeScalars.allSatisfy { scalar in
                scalar != " " && scalar != "\"" && scalar != "=" && scalar != "\\" && !isControl(scalar)
            }
        return isPlain ? text : "\"" + escaped(text, quotes: true) + "\""
    }

    /// Appends the text as a JSON string (RFC 8259, section 7), with the same characters escaped.
    static func appendJSON(_ text: String, to line: inout String) {
        line += "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": line += "\\\""
            case "\\": line += "\\\\"
            case "\n": line += "\\n"
            case "\r": line += "\\r"
            case "\t": line += "\\t"
            case _ where isControl(scalar):
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            default: line.unicodeScalars.append(scalar)
            }
        }
        line += "\""
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        if 0x20..<0x7F ~= scalar.value { return false }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
