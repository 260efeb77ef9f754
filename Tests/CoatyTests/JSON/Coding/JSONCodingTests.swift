import Foundation
import TestSupport
import Testing

@testable import Coaty

/// Compares the decoder and encoder with Foundation's, for generated types and documents. The seeds are fixed, so
/// failures are reproducible.
@Suite(.exclusive) struct JSONCodingTests {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func decodesAndRefusesAsFoundation(seed: UInt64) throws {
        var generator = ShapeGenerator(seed: seed)
        var (read, refused) = (0, 0)
        for _ in 0..<1_000 {
            let shape = generator.shape()
            for _ in 0..<3 {
                let text = generator.document(shape)
                let own = Generated.with(shape) { Outcome { try PayloadCoder.decode(Generated.self, from: text) } }
                let foundation = Generated.with(shape) {
                    Outcome { try JSONDecoder().decode(Generated.self, from: Data(text.utf8)) }
                }
                #expect(own.agrees(with: foundation), "\(own) \(foundation) \(shape) \(text)")
                if case .value = own { read += 1 } else { refused += 1 }
            }
        }
        #expect(read > 500 && refused > 500, "\(read) documents read, \(refused) refused")
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func writesTheBytesOfFoundation(seed: UInt64) throws {
        var generator = ShapeGenerator(seed: seed)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        for _ in 0..<2_000 {
            let shape = generator.shape()
            let value = Generated(generator.sample(shape))
            try Generated.with(shape) {
                let document = try JSONDocument(encoding: value)
                let expected = try encoder.encode(value)
                #expect(document.bytes.elementsEqual(expected), "\(shape) \(String(decoding: expected, as: UTF8.self))")
                try #require(try document.isLikeScanned())
                let decoded = try PayloadCoder.decode(Generated.self, from: document.root)
                #expect(try JSONDocument(encoding: decoded).bytes == document.bytes)
            }
        }
    }

    @Test func ofTwoMembersTheLastCounts() throws {
        let decoded: [String: Int] = try PayloadCoder.decode(from: #"{"a":1,"b":2,"\u0061":3}"#)
        #expect(decoded == ["a": 3, "b": 2])
    }

    @Test func loneSurrogatesAreReplaced() throws {
        #expect(try PayloadCoder.decode([String].self, from: #"["\ud800","a\udc00b"]"#) == ["\u{FFFD}", "a\u{FFFD}b"])
    }

    @Test func numbersThatDoNotFitAreRefusedWithTheirPlace() throws {
        let error = #expect(throws: DecodingError.self) {
            try PayloadCoder.decode([String: [Int8]].self, from: #"{"a":[1,128]}"#)
        }
        guard case .dataCorrupted(let context) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map(\.stringValue) == ["a", "Index 1"])
        #expect(context.debugDescription == "128 is not a valid Int8")
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func numbersThatAreNotFiniteAreNotEncoded(number: Double) throws {
        let error = #expect(throws: EncodingError.self) { try PayloadCoder.encode(["a": [1, number]]) }
        guard case .invalidValue(_, let context) = error else { return }
        #expect(context.codingPath.map(\.stringValue) == ["a", "Index 1"])
    }

    @Test func valuesThatAreTooDeepAreNotEncoded() throws {
        func nested(_ depth: Int) -> AnyCodable { (1..<depth).reduce(.array([])) { value, _ in .array([value]) } }
        _ = try PayloadCoder.encode(nested(JSONDocument.maximumDepth))
        #expect(throws: EncodingError.self) { try PayloadCoder.encode(nested(JSONDocument.maximumDepth + 1)) }
    }

    @Test func typesThatEncodeNothingAreRefusedAtTheTop() throws {
        struct Nothing: Encodable { func encode(to encoder: any Encoder) {} }
        #expect(throws: EncodingError.self) { try PayloadCoder.encode(Nothing()) }
        #expect(try PayloadCoder.encode([Nothing()]) == "[{}]")
    }

    @Test func integersOf128BitsAreExact() throws {
        let values: [Int128] = [.min, 0, .max]
        #expect(try PayloadCoder.decode([Int128].self, from: PayloadCoder.encode(values)) == values)
        #expect(try PayloadCoder.decode([UInt128].self, from: PayloadCoder.encode([UInt128.max])) == [.max])
    }

    /// Two containers of a base class and its subclass for the same key.
    @Test func nestedContainersForTheSameKeyAreContinued() throws {
        struct Twice: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Name.self)
                var first = container.nestedContainer(keyedBy: Name.self, forKey: Name("n"))
                try first.encode(1, forKey: Name("a"))
                var second = container.nestedContainer(keyedBy: Name.self, forKey: Name("n"))
                try first.encode(2, forKey: Name("c"))
                try second.encode(3, forKey: Name("b"))
            }
        }
        #expect(try PayloadCoder.encode(Twice()) == #"{"n":{"a":1,"b":3,"c":2}}"#)
    }

    /// Foundation writes `NaN` for such a number, which is no JSON.
    @Test func decimalsThatAreNoNumberAreNotEncoded() {
        #expect(throws: EncodingError.self) { try PayloadCoder.encode(["a": Decimal.nan]) }
    }

    @Test func partsThatCanNotBeEncodedLeaveNothing() throws {
        struct Lenient: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Name.self)
                try container.encode(1, forKey: Name("kept"))
                try? container.encode(Double.nan, forKey: Name("kept"))
                try? container.encode(["n": Double.nan], forKey: Name("left"))
                var list = container.nestedUnkeyedContainer(forKey: Name("list"))
                do { try list.encode(Double.nan) } catch { try list.encode("NaN") }
                #expect(list.count == 1)
                var single = container.superEncoder(forKey: Name("single")).singleValueContainer()
                do { try single.encode(["b": Double.nan]) } catch { try single.encode(["c": 1]) }
            }
        }
        #expect(try PayloadCoder.encode(Lenient()) == #"{"kept":1,"list":["NaN"],"single":{"c":1}}"#)
    }

    /// An application may catch many errors of filters.
    @Test(.timeLimit(.minutes(1))) func caughtErrorsOfFiltersTakeLinearTime() throws {
        struct Lenient: Decodable {
            let filter: ObjectFilter?
            init(from decoder: any Decoder) { filter = try? ObjectFilter(from: decoder) }
        }
        let count = 100_000
        let text = "[\(Array(repeating: #"{"conditions":{"not":1}}"#, count: count).joined(separator: ","))]"
        let filters: [Lenient] = try PayloadCoder.decode(from: text)
        #expect(filters.count == count && filters.allSatisfy { $0.filter == nil })
    }

    /// Each value is read and written once, whatever the shape; otherwise this would take hours.
    @Test(.timeLimit(.minutes(1))) func largeDocumentsTakeLinearTime() throws {
        let list = "[\(Array(repeating: #"{"a":[1,null,"x"]}"#, count: 100_000).joined(separator: ","))]"
        let members = (0..<100_000).map { "\"m\($0)\":[\($0)]" }
        let object = "{\(members.joined(separator: ","))}"
        let json: [AnyCodable] = try PayloadCoder.decode(from: list)
        #expect(json.count == 100_000)
        #expect(try PayloadCoder.encode(json) == list)
        let values: [String: AnyCodable] = try PayloadCoder.decode(from: object)
        #expect(values["m99999"] == [99_999])
        #expect(try PayloadCoder.decode([String: [Int]].self, from: PayloadCoder.encode(values)).count == 100_000)
        // Errors that a type catches do not search their place from the start of the text.
        let lenient = Shape.array(.either(.primitive(.int), .object([])))
        let samples = try Generated.with(lenient) { try PayloadCoder.decode(Generated.self, from: list) }
        #expect(samples.sample != .absent)
    }
}

extension JSONDocument {
    /// Returns whether the places that the encoder recorded are those that a scan finds.
    fileprivate func isLikeScanned() throws -> Bool {
        let scanned = try JSONDocument(bytes)
        return scanned.wide?.reservedBytes == wide?.reservedBytes
            && scanned.nodes.elementsEqual(nodes) { scanned, written in
                scanned.start == written.start && scanned.end == written.end && scanned.next == written.next
                    && scanned.kind == written.kind && scanned.isEscaped == written.isEscaped
                    && scanned.isWide == written.isWide
            }
    }
}

/// What a decoder makes of a document.
private enum Outcome: Equatable {
    case value(Sample)
    /// The kind of error, and the coding path.
    case refused(String, [String])

    init(_ decode: () throws -> Generated) {
        do {
            self = .value(try decode().sample)
        } catch DecodingError.typeMismatch(let type, let context) {
            self = .refused("mismatch \(type)", Self.path(context))
        } catch DecodingError.valueNotFound(let type, let context) {
            self = .refused("not found \(type)", Self.path(context))
        } catch DecodingError.keyNotFound(let key, let context) {
            self = .refused("no \(key.stringValue)", Self.path(context))
        } catch DecodingError.dataCorrupted(let context) {
            self = .refused("corrupted", Self.path(context))
        } catch {
            self = .refused("\(error)", [])
        }
    }

    /// Returns whether a result is the same as Foundation's, which has no place for numbers that do not fit.
    func agrees(with foundation: Outcome) -> Bool {
        if case (.refused("corrupted", _), .refused("corrupted", [])) = (self, foundation) { return true }
        return self == foundation
    }

    private static func path(_ context: DecodingError.Context) -> [String] {
        context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
    }
}
