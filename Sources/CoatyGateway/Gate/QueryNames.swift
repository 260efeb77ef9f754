/// The names of the query parameters that a resource takes.
///
/// It refuses others: if it ignored a misspelt `filter`, the client would get everything and take it for what it has asked for.
enum QueryNames: Sendable, ExpressibleByArrayLiteral {
    /// These.
    case only(Set<String>)
    /// Those of a stream with one subscription to the event that the path names.
    case stream
    /// Any, which the resource ignores.
    case any

    /// Names that begin with these are ignored. Campaigns, caches and proxies add them.
    private static let ignoredPrefixes = ["utm_", "_"]

    /// The name of a ticket, which authenticates the client of a stream.
    static let ticket = "ticket"

    init(arrayLiteral names: String...) { self = .only(Set(names)) }

    /// Returns whether a parameter has no effect on any request.
    static func isIgnored(_ name: String) -> Bool {
        name.isEmpty || ignoredPrefixes.contains { name.hasPrefix($0) }
    }

    /// Checks the names of a query.
    ///
    /// - Parameter event: the name of the event that the path names; nil if it names none.
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
            event.flatMap(Observation.Event.init).map { event in
                event.parameters.union(SubscriptionOptions.parameters).union([Self.ticket])
            }
        case .any: nil
        }
    }
}
