import Foundation
import ProblemDetails

/// Writes JSON around payloads that are already JSON.
package enum JSONText {
    /// Appends a string with its quotes (RFC 8259, section 7).
    package static func append(_ text: String, to bytes: inout [UInt8]) { appendJSONString(text, to: &bytes) }

    /// Appends an array. `append` appends each element as JSON.
    package static func appendArray<Element>(
        _ elements: some Sequence<Element>,
        to bytes: inout [UInt8],
        _ append: (Element, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(element, &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    /// Returns a JSON text as one line. Line breaks become spaces, since JSON has them only between tokens.
    package static func line(_ text: [UInt8]) -> [UInt8] {
        guard !isLine(text) else { return text }
        return text.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
    }

    /// Returns whether a text has no line breaks. Uses the C library, because a loop in Swift takes ten times as long.
    package static func isLine(_ text: [UInt8]) -> Bool {
        text.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return true }
            return memchr(start, 0x0A, bytes.count) == nil && memchr(start, 0x0D, bytes.count) == nil
        }
    }
}
