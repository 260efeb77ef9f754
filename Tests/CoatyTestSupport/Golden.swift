import Foundation

@testable import Coaty

/// Messages recorded from reference agents.
enum Golden {
    struct Vector: Decodable {
        let note: String
        let topic: String
        let payload: String
        let encoding: String
        let retain: Bool

        var bytes: [UInt8] {
            encoding == "base64" ? Data(base64Encoded: payload).map { Array($0) } ?? [] : Array(payload.utf8)
        }
    }

    struct Inbound: Decodable, CustomStringConvertible {
        struct Request: Decodable {
            let topic: String
            let payload: String
        }

        let note: String
        let request: Request?
        let topic: String
        let payload: String
        let accepted: Bool

        var description: String { note }
    }

    struct Subscription: Decodable {
        let note: String
        let api: String
        let subscribe: [String]
        let unsubscribeOnLastUnsubscribe: [String]?
    }

    struct Packet: Decodable {
        struct Will: Decodable {
            let topic: String
            let payload: String
            let qos: Int
            let retain: Bool
        }

        struct Filter: Decodable {
            let topic: String
        }

        let step: String
        let clientId: String
        let cmd: String
        let will: Will?
        let subscriptions: [Filter]?
        let topic: String?
        let payload: String?
    }

    static func lines<Line: Decodable>(_ file: String, as type: Line.Type = Line.self) throws -> [Line] {
        let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fixtures/golden/\(file)")
        return try String(contentsOf: url, encoding: .utf8).split(separator: "\n")
            .map { try JSONDecoder().decode(type, from: Data($0.utf8)) }
    }
}

/// A JSON value in which numbers with the same value are equal.
enum ComparableJSON: Equatable {
    case scalar(AnyCodable)
    case number(Double)
    case array([ComparableJSON])
    case object([String: ComparableJSON])

    init(_ text: [UInt8]) throws {
        self.init(AnyCodable(try JSONDocument(text).root))
    }

    init(_ text: String) throws {
        try self.init(Array(text.utf8))
    }

    private init(_ json: AnyCodable) {
        switch json {
        case .integer(let integer): self = .number(Double(integer))
        case .unsignedInteger(let integer): self = .number(Double(integer))
        case .double(let double): self = .number(double)
        case .array(let elements): self = .array(elements.map(ComparableJSON.init))
        case .object(let members): self = .object(members.mapValues(ComparableJSON.init))
        default: self = .scalar(json)
        }
    }
}
