import Foundation
import TestSupport

@testable import Coaty

/// Generates types, values of these types, and documents that contain such values or almost do.
struct ShapeGenerator {
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    mutating func shape(_ depth: Int = 4) -> Shape {
        switch depth > 0 ? below(14) : below(7) {
        case 0...2: .primitive(pick(Shape.Primitive.allCases))
        case 3: .date
        case 4: .data
        case 5: .url
        case 6: .decimal
        case 7: .optional(shape(depth - 1))
        case 8: .array(shape(depth - 1))
        case 9: .dictionary(shape(depth - 1))
        case 10, 11: .object(members(depth - 1))
        case 12: .tuple((0..<below(5)).map { _ in shape(depth - 1) })
        default: .either(shape(depth - 1), shape(depth - 1))
        }
    }

    /// Some objects are wide, so that their members are found by an index.
    private mutating func members(_ depth: Int) -> [Shape.Member] {
        var names = Set<String>()
        for _ in 0..<(below(20) == 0 ? 24 : below(7)) { names.insert(name()) }
        return names.sorted().shuffled(using: &random).map { name in
            Shape.Member(name: name, shape: shape(names.count > 10 ? 0 : depth), access: pick(Shape.Access.allCases))
        }
    }

    private mutating func name() -> String {
        pick(["a", "b", "name", "objectId", "ä", "\u{1F600}", "x y", "xAy", "x\"y", "x\ny", "x\\y", "x]y", ""])
            + pick(["", "1", "22"])
    }

    /// Returns a value of a shape that can be encoded.
    mutating func sample(_ shape: Shape) -> Sample {
        switch shape {
        case .primitive(let type): sample(type)
        case .date: .date(Date(timeIntervalSinceReferenceDate: Double(below(1_000_000)) / 8))
        case .data: .data(Data((0..<below(9)).map { _ in UInt8(below(256)) }))
        case .url: .url(URL(string: "https://example.com/\(below(9))/a%20b?c=d") ?? URL(filePath: "/"))
        case .decimal: .decimal(Decimal(below(1_000_000)) / pick([1, 10, 1000]))
        case .optional(let shape): below(3) == 0 ? .absent : sample(shape)
        case .array(let shape): .list((0..<below(4)).map { _ in sample(shape) })
        case .dictionary(let shape):
            .members(Dictionary((0..<below(4)).map { _ in (name(), sample(shape)) }, uniquingKeysWith: { $1 }))
        case .object(let members):
            .members(Dictionary(members.map { ($0.name, sample($0.shape)) }, uniquingKeysWith: { $1 }))
        case .tuple(let shapes): .list(shapes.map { sample($0) })
        case .either(let shape, _): sample(shape)
        }
    }

    private mutating func sample(_ type: Shape.Primitive) -> Sample {
        switch type {
        case .bool: .bool(below(2) == 0)
        case .string: .string(string())
        case .double: .double(pick([0, -0.0, 1, 21.5, 1e300, .leastNonzeroMagnitude, -1.1, 1e21, 123456789.125, .pi]))
        case .float: .float(pick([0, 1, 21.5, 3.4e38, .leastNonzeroMagnitude, 0.1]))
        case .int, .int64: .signed(pick([.min, -1, 0, 7, 1 << 53 + 1, .max]))
        case .int8: .signed(pick([-128, 0, 127]))
        case .int16: .signed(pick([-32768, 5, 32767]))
        case .int32: .signed(pick([-2_147_483_648, 9, 2_147_483_647]))
        case .uint, .uint64: .unsigned(pick([0, 10, .max]))
        case .uint8: .unsigned(pick([0, 255]))
        case .uint16: .unsigned(pick([3, 65535]))
        case .uint32: .unsigned(pick([4, 4_294_967_295]))
        }
    }

    private mutating func string() -> String {
        (0..<below(6)).map { _ in
            pick(["a", "0", "\"", "\\", "/", "\n", "\u{0}", "\u{1F}", "\u{7F}", "ä", "日本", "\u{1F600}", "\u{2028}"])
        }
        .joined()
    }

    /// Returns a JSON text that a shape can read, or that it refuses for one or a few reasons.
    mutating func document(_ shape: Shape) -> String {
        if below(40) == 0 { return strayValue() }
        switch shape {
        case .primitive(.bool): return pick(["true", "false"])
        case .primitive(.string): return quoted(string())
        case .primitive, .date, .decimal: return number()
        case .data: return pick([#""""#, #""AAEC""#, #""AA==""#, #""A\/8=""#, #""%%""#])
        case .url: return pick([#""https:\/\/example.com""#, #""a b""#, #""urn:x""#, #""""#])
        case .optional(let shape): return below(3) == 0 ? "null" : document(shape)
        case .array(let shape): return list((0..<below(4)).map { _ in document(shape) })
        case .dictionary(let shape):
            return object(Dictionary((0..<below(20)).map { _ in (name(), document(shape)) }, uniquingKeysWith: { $1 }))
        case .object(let members):
            var texts: [String: String] = [:]
            for member in members where below(25) > 0 { texts[member.name] = document(member.shape) }
            if below(3) == 0 { texts["unknown"] = strayValue() }
            return object(texts)
        case .tuple(let shapes):
            let texts = shapes.map { document($0) }
            return list(below(20) == 0 ? texts.dropLast() : texts)
        case .either(let first, let second): return document(below(2) == 0 ? first : second)
        }
    }

    private mutating func object(_ members: [String: String]) -> String {
        let texts = members.sorted { $0.key < $1.key }.shuffled(using: &random)
            .map { quoted($0.key) + pick([":", " : "]) + $0.value }
        return "{\(texts.joined(separator: pick([",", " ,\n"])))}"
    }

    private func list(_ elements: [String]) -> String { "[\(elements.joined(separator: ","))]" }

    /// Writes some characters as escapes that are not needed.
    private mutating func quoted(_ string: String) -> String {
        let content = string.unicodeScalars.map { scalar in
            if scalar == "\"" || scalar == "\\" { return "\\\(scalar)" }
            if scalar.value < 0x20 || below(10) == 0 {
                return String(scalar).utf16.map { String(format: "\\u%04x", $0) }.joined()
            }
            return String(scalar)
        }
        return "\"\(content.joined())\""
    }

    private mutating func number() -> String {
        switch below(4) {
        case 0:
            pick([
                "0", "-0", "1", "-1", "127", "128", "255", "256", "-128", "-129", "65535", "65536", "4294967295",
                "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
                "-9223372036854775809", "18446744073709551615", "18446744073709551616", "9007199254740993",
            ])
        case 1:
            pick([
                "1.0", "-1.0", "1e2", "1E+2", "100e-2", "1.5", "0.0", "-0.0", "1e18", "1e19", "1e20", "-1e18",
                "1.5e1", "9007199254740993.0", "18014398509481985e0", "1.0000000000000001", "12345678901234567e1",
                "1000000000000000000.0", "9223372036854775000.0",
                "9007199254740993.00000", "18446744073709551610e-1", "10000000000000000000e0",
                "0.00000000000000000001e39",
            ])
        case 2:
            pick([
                "1e308", "1e309", "-1e309", "1e-324", "5e-324", "2e-324", "1e-400", "0e-400", "3.5e38", "1e-46", "0.1",
                "3.4028235e38", "1.4e-45", "2.2250738585072011e-308", "1e9999999999",
            ])
        default: "\(pick(["", "-"]))\(below(1_000_000)).\(below(100_000))\(pick(["", "e3", "E-7", "e+22", "e23"]))"
        }
    }

    private mutating func strayValue() -> String {
        pick(["null", "true", "\"text\"", "12", "-0.5", "[]", "{}", "[1,null]", #"{"a":{"b":[]}}"#])
    }
}
