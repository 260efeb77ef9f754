import Base
import Coaty
import Feeds
import Gate
import HTTPServer
import Network

/// Parameters in the query of an HTTP request. ``QueryNames`` refuses unknown ones.
struct QueryParameters: ClientParameters {
    let items: [(name: String, value: String)]
    let limits: Limits

    init(items: [(name: String, value: String)], limits: Limits) {
        self.items = items
        self.limits = limits
    }

    init(_ request: borrowing HTTPRequest, limits: Limits) {
        self.init(items: request.queryItems.map { ($0.name, $0.value) }, limits: limits)
    }

    func text(_ name: String) throws -> String? {
        let values = items.filter { $0.name == name }
        guard values.count <= 1 else { throw invalid(name, "must be given once") }
        return values.first?.value
    }

    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let text = try text(name) else { return nil }
        guard let value = Int(text), range.contains(value), text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }) else {
            throw invalid(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func milliseconds(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let text = try text(name) else { return nil }
        guard let value = ClientDuration.milliseconds(text, needsUnit: false), range.contains(value) else {
            throw invalid(name, ClientDuration.refusal(range))
        }
        return value
    }

    func boolean(_ name: String) throws -> Bool? {
        guard let text = try text(name) else { return nil }
        guard let value = Bool(text) else { throw invalid(name, "must be true or false") }
        return value
    }

    func condition(_ name: String) throws -> ClientCondition? {
        guard let text = try text(name) else { return nil }
        do throws(PayloadError) {
            return try ClientCondition(Payload(Array(text.utf8)).json, limits: limits)
        } catch {
            let reason =
                switch error {
                case .malformed(let error): "is not JSON: \(error)"
                case .invalid(let pointer, let reason): pointer.isEmpty ? reason : "at \(pointer) \(reason)"
                }
            throw invalid(name, reason)
        }
    }

    func texts(_ name: String) throws -> [String]? {
        try text(name)?.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
    }

    func properties(_ name: String) throws -> [ObjectFilterProperty]? {
        try texts(name)?.map { ObjectFilterProperty($0) }
    }

    func invalid(_ name: String, _ reason: String) -> any Error { InvalidParameter(name: name, reason: reason) }
}
