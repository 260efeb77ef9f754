import Foundation
public import Logging

/// Writes log lines to standard error, each as one line.
///
/// Text in a line may come from the network: control characters in it are escaped, so that it can neither forge a line nor send
/// commands to a terminal.
public struct LogStream: TextOutputStream, Sendable {
    /// Returns a log handler that writes to standard error.
    public static func handler(label: String) -> any LogHandler { StreamLogHandler(label: label, stream: LogStream()) }

    /// Writes one line, which must end with a newline.
    public func write(_ line: String) {
        // There is nowhere left to report a failure.
        try? FileHandle.standardError.write(contentsOf: Data((Self.escaped(line.dropLast()) + "\n").utf8))
    }

    /// Returns the text with escapes for backslashes and for characters that control a terminal, break lines or change the text
    /// direction.
    static func escaped(_ text: some StringProtocol) -> String {
        guard text.unicodeScalars.contains(where: { $0 == "\\" || isControl($0) }) else { return String(text) }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\r": escaped += "\\r"
            case "\t": escaped += "\\t"
            case _ where isControl(scalar): escaped += "\\u{" + String(scalar.value, radix: 16) + "}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
