import Base
import Feeds

/// The allowed names of a resource's query parameters.
///
/// Other names are refused: if a misspelled `filter` were ignored, the client would get all objects and mistake them
/// for the filtered result.
package enum QueryNames: Sendable, ExpressibleByArrayLiteral {
    /// Only these names.
    case only(Set<String>)
    /// The names for a stream with one subscription to the event in the path.
    case stream
    /// Any names, which the resource ignores.
    case any

    /// Prefixes of names that are ignored. Campaigns, caches and proxies add such parameters.
    private static let ignoredPrefixes = ["utm_", "_"]

    /// The name of a ticket, which authenticates the client of a stream.
    static let ticket = "ticket"

    package init(arrayLiteral names: String...) { self = .only(Set(names)) }

    /// Returns whether a parameter has no effect on any request.
    static func isIgnored(_ name: String) -> Bool {
        name.isEmpty || ignoredPrefixes.contains { name.hasPrefix($0) }
    }

    /// Checks the names of a query.
    ///
    /// - Parameter event: the name of the event in the path; nil if there is none.
    /// - Throws: ``InvalidParameter`` with the first unknown name, and the nearest known one.
    func check(_ names: some Sequence<String>, event: String?) throws(InvalidParameter) {
        // A stream of an unknown event is not found.
        guard let known = known(event: event) else { return }
        for name in names where !known.contains(name) && !Self.isIgnored(name) {
            throw InvalidParameter(
                name: Problems.short(name),
                reason: known.isEmpty
                    ? "is unknown: this resource takes no query parameters"
                    : NearestName.refusal(of: name, known: known)
            )
        }
    }

    private func known(event: String?) -> Set<String>? {
        switch self {
        case .only(let names): names
        case .stream:
            event.flatMap(Observation.parameters(of:)).map { parameters in
                parameters.union(SubscriptionOptions.parameters).union([Self.ticket])
            }
        case .any: nil
        }
    }
}
