import Coaty
import HTTPServer

/// What a client has said by name, in the query of a request or in a frame.
///
/// All of them throw ``InvalidParameter`` or `PayloadError`, which say which parameter can't be used and why.
protocol ClientParameters {
    func text(_ name: String) throws -> String?
    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int?
    func boolean(_ name: String) throws -> Bool?
    /// A condition, in JSON. What is wrong in that of a query is the parameter: nobody sees a document that a pointer could
    /// point into.
    func condition(_ name: String) throws -> ObjectFilterCondition?
    /// A list of names: in a query separated by commas.
    func texts(_ name: String) throws -> [String]?
    /// A list of properties: in a query separated by commas.
    func properties(_ name: String) throws -> [ObjectFilterProperty]?
    /// What is to be thrown where the value of a parameter can't be used.
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
            guard let coreType = CoreType(rawValue: text) else { throw invalid(name, "must be a core type") }
            return coreType
        }
    }

    func requiredLevel(_ name: String) throws -> WireName {
        guard let level = try level(name) else { throw invalid(name, "is missing") }
        return level
    }
}

/// The parameters in the query of a request. Those that are not asked for do not matter.
struct QueryParameters: ClientParameters {
    let items: [(name: String, value: String)]

    init(items: [(name: String, value: String)]) { self.items = items }

    init(_ request: borrowing HTTPRequest) {
        items = request.queryItems.map { ($0.name, $0.value) }
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

    func boolean(_ name: String) throws -> Bool? {
        guard let text = try text(name) else { return nil }
        guard let value = Bool(text) else { throw invalid(name, "must be true or false") }
        return value
    }

    func condition(_ name: String) throws -> ObjectFilterCondition? {
        guard let text = try text(name) else { return nil }
        do throws(PayloadError) {
            return try ObjectFilterCondition(ofClient: Payload(Array(text.utf8)).json)
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

/// The parameters in a client's frame.
struct FrameParameters: ClientParameters {
    let frame: JSONView

    func text(_ name: String) throws -> String? {
        guard let view = frame.member(named: name) else { return nil }
        guard let text = view.string else { throw view.invalid("must be a string") }
        return text
    }

    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        try frame.member(named: name)?.integer(in: range)
    }

    func boolean(_ name: String) throws -> Bool? {
        guard let view = frame.member(named: name) else { return nil }
        guard let value = view.bool else { throw view.invalid("must be true or false") }
        return value
    }

    func condition(_ name: String) throws -> ObjectFilterCondition? {
        try frame.member(named: name).map { view in try ObjectFilterCondition(ofClient: view) }
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
