import TestSupport
import Testing

@testable import Logs

/// Escaping of text from the network in log lines.
@Suite(.exclusive) struct LogTextTests {
    @Test(arguments: [
        ("topic a/b ü 漢 👍", "topic a/b ü 漢 👍"), ("a\nb", "a\\nb"), ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\u{1B}[2J", "\\u{1b}[2J"),
        ("\u{0}", "\\u{0}"), ("a\u{7F}\u{85}", "a\\u{7f}\\u{85}"), ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
        ("\u{202E}gpj.exe", "\\u{202e}gpj.exe"), ("", ""), ("a\\n", "a\\\\n"),
    ])
    func controlCharactersAreEscaped(_ text: String, _ escaped: String) { #expect(LogText.escaped(text) == escaped) }
}
