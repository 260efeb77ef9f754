import Base
import Coaty
import HTTPServer
import Network

/// Named parameters from a client, in the query of an HTTP request or in a frame.
///
/// The functions return nil if the parameter is absent, unless it is required. They throw ``InvalidParameter`` or
/// `PayloadError` with the name of an invalid parameter and the reason.
protocol ClientParameters {
    /// The limits of the values.
    var limits: Limits { get }
    func text(_ name: String) throws -> String?
    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int?
    /// Returns a duration in milliseconds. See ``ClientDuration``.
    func milliseconds(_ name: String, in range: ClosedRange<Int>) throws -> Int?
    func boolean(_ name: String) throws -> Bool?
    /// Returns a filter condition, given as JSON. In a query, an error refers to the parameter, because there is no
    /// JSON document for a pointer.
    func condition(_ name: String) throws -> ClientCondition?
    /// Returns a list of names, which a query separates with commas.
    func texts(_ name: String) throws -> [String]?
    /// Returns a list of properties, which a query separates with commas.
    func properties(_ name: String) throws -> [ObjectFilterProperty]?
    /// Returns the error to throw for an invalid parameter.
    func invalid(_ name: String, _ reason: String) -> any Error
}

extension ClientParameters {
    func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String
    ) throws -> Choice? where Choice.RawValue == String {
        guard let text = try text(name) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw invalid(name, "must be one of \(names)")
        }
        return choice
    }

    func required(_ name: String) throws -> String {
        guard let text = try text(name) else { throw invalid(name, "is missing") }
        guard !text.isEmpty else { throw invalid(name, "must not be empty") }
        return text
    }

    func level(_ name: String) throws -> WireName? {
        guard let text = try text(name) else { return nil }
        guard WireName.isPublishable(text) else { throw invalid(name, InvalidParameter.level) }
        return WireName(text)
    }

    func coreType(_ name: String) throws -> CoreType? {
        try text(name).map { text in
            guard let coreType = CoreType(rawValue: text) else { throw invalid(name, CoreType.refusal) }
            return coreType
        }
    }

    func requiredLevel(_ name: String) throws -> WireName {
        guard let level = try level(name) else { throw invalid(name, "is missing") }
        return level
    }
}

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

/// Parameters in a client frame.
struct FrameParameters: ClientParameters {
    let frame: JSONView
    let limits: Limits

    func text(_ name: String) throws -> String? {
        guard let view = frame.member(named: name) else { return nil }
        guard let text = view.string else { throw view.invalid("must be a string") }
        return text
    }

    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        try frame.member(named: name)?.integer(in: range)
    }

    func milliseconds(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        try frame.member(named: name)?.milliseconds(in: range)
    }

    func boolean(_ name: String) throws -> Bool? {
        guard let view = frame.member(named: name) else { return nil }
        guard let value = view.bool else { throw view.invalid("must be true or false") }
        return value
    }

    func condition(_ name: String) throws -> ClientCondition? {
        try frame.member(named: name).map { view in try ClientCondition(view, limits: limits) }
    }

    func texts(_ name: String) throws -> [String]? {
        guard let view = frame.member(named: name) else { return nil }
        guard view.kind == .array else { throw view.invalid("must be an array") }
        return try view.elements.map { element in
            guard let text = element.string else { throw element.invalid("must be a string") }
            return text
        }
    }

    func properties(_ name: String) throws -> [ObjectFilterProperty]? {
        guard let view = frame.member(named: name) else { return nil }
        guard view.kind == .array else { throw view.invalid("must be an array") }
        return try view.elements.map { try ObjectFilterProperty($0) }
    }

    func invalid(_ name: String, _ reason: String) -> any Error {
        PayloadError.invalid(pointer: "/" + name, reason: reason)
    }
}
