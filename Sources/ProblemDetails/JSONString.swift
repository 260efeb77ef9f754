/// Appends a text as a JSON string (RFC 8259, section 7).
package func appendJSONString(_ text: String, to json: inout [UInt8]) {
    json.append(UInt8(ascii: "\""))
    var text = text
    text.withUTF8 { bytes in
        // Few texts contain characters to escape.
        guard bytes.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else {
            json.append(contentsOf: bytes)
            return
        }
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): json += [UInt8(ascii: "\\"), byte]
            case 0..<0x10: json += "\\u000\(String(byte, radix: 16))".utf8
            case 0x10..<0x20: json += "\\u00\(String(byte, radix: 16))".utf8
            default: json.append(byte)
            }
        }
    }
    json.append(UInt8(ascii: "\""))
}
