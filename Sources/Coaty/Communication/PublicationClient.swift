/// A client on whose behalf an agent publishes. What a broker refuses concerns only the client that has published it.
package protocol PublicationClient: AnyObject, Sendable {
    /// The client in the log.
    var label: String { get }

    /// Called when a publication of the client was given up, under no lock; must not block.
    func publicationWasRefused(_ publication: RefusedPublication)
}

/// A place or another object that is released when a publication is written or given up.
package protocol PublicationHolder: AnyObject, Sendable {
    /// The client that has published it; nil for the agent itself.
    var client: (any PublicationClient)? { get }
}

/// A publication that was given up because the broker closes the connection when it receives it.
package struct RefusedPublication: Sendable, Equatable {
    /// What brokers may deny: a topic without the ids in it.
    package enum Kind: Hashable, Sendable, CustomStringConvertible {
        case event(CommunicationEventType, name: EventName?)
        case topic(String)

        init(_ publication: Publication) {
            self =
                switch publication.destination {
                case .event(let address): .event(address.eventType, name: address.name)
                case .ioRoute(let name), .raw(let name, _): .topic(name)
                }
        }

        package var description: String {
            switch self {
            case .event(let type, let name): name.map { "\(type) \($0.text)" } ?? "\(type)"
            case .topic(let topic): topic
            }
        }
    }

    package let kind: Kind
    /// Its size with its address, in bytes.
    package let size: Int
    /// The advertised object, which is no longer advertised again; nil if there is none.
    package let objectId: CoatyUUID?

    init(_ publication: Publication) {
        (kind, size, objectId) = (Kind(publication), publication.size, publication.sharedObjectId)
    }
}
