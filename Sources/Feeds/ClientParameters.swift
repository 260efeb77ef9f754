package import Base
package import Coaty
import Network

/// Named parameters from a client, in the query of an HTTP request or in a frame.
///
/// The functions return nil if the parameter is absent, unless it is required. They throw ``InvalidParameter`` or
/// `PayloadError` with the name of an invalid parameter and the reason.
package protocol ClientParameters {
    /// The limits of the values.
    var limits: Limits { get }
    func text(_ name: String) throws -> String?
    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int?
    /// Returns a duration, such as `2s`, in milliseconds.
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

    package func required(_ name: String) throws -> String {
        guard let text = try text(name) else { throw invalid(name, "is missing") }
        guard !text.isEmpty else { throw invalid(name, "must not be empty") }
        return text
    }

    package func level(_ name: String) throws -> WireName? {
        guard let text = try text(name) else { return nil }
        guard WireName.isPublishable(text) else { throw invalid(name, InvalidParameter.level) }
        return WireName(text)
    }

    package func coreType(_ name: String) throws -> CoreType? {
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
