import Coaty
import HTTPServer

/// A query or path parameter that can't be used.
struct InvalidParameter: Error {
    /// What the name of a channel or an object type must be.
    static let level =
        "must have 1 to \(CommunicationTopic.maximumLevelLength) bytes and hold none of / + # and no control"
        + " characters"

    let name: String
    let reason: String

    /// The value of a parameter that may be given once; nil where it is not given.
    static func single(_ name: String, _ values: [String]) throws(InvalidParameter) -> String? {
        guard values.count <= 1 else { throw InvalidParameter(name: name, reason: "must be given once") }
        return values.first
    }

    /// The value of a parameter that is a condition, in JSON.
    static func condition(_ name: String, _ text: String) throws(InvalidParameter) -> ObjectFilterCondition {
        do throws(PayloadError) {
            return try ObjectFilterCondition(ofClient: Payload(Array(text.utf8)).json)
        } catch {
            let reason =
                switch error {
                case .malformed(let error): "is not JSON: \(error)"
                case .invalid(let pointer, let reason): pointer.isEmpty ? reason : "at \(pointer) \(reason)"
                }
            throw InvalidParameter(name: name, reason: reason)
        }
    }

    /// The value of a parameter that is a whole number.
    static func integer(_ name: String, _ text: String, in range: ClosedRange<Int>) throws(InvalidParameter) -> Int {
        guard let value = Int(text), range.contains(value), text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }) else {
            throw InvalidParameter(
                name: name,
                reason: "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return value
    }

    var problem: Problem { Problems.invalidParameter(name, reason) }
}

extension HTTPRequest {
    /// A query parameter that may be given once, and is a whole number.
    func integer(_ name: String, in range: ClosedRange<Int>) throws(InvalidParameter) -> Int? {
        guard let text = try single(name) else { return nil }
        return try InvalidParameter.integer(name, text, in: range)
    }

    /// A query parameter that may be given once, and is true or false.
    func boolean(_ name: String) throws(InvalidParameter) -> Bool? {
        guard let text = try single(name) else { return nil }
        guard let value = Bool(text) else { throw InvalidParameter(name: name, reason: "must be true or false") }
        return value
    }

    /// A query parameter that must be given, once.
    func required(_ name: String) throws(InvalidParameter) -> String {
        guard let value = try single(name), !value.isEmpty else {
            throw InvalidParameter(name: name, reason: "is missing")
        }
        return value
    }

    /// A query parameter that may be given once.
    func single(_ name: String) throws(InvalidParameter) -> String? {
        try InvalidParameter.single(name, queryItems.filter { $0.name == name }.map(\.value))
    }
}
