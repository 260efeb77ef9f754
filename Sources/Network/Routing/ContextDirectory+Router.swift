import Coaty

extension ContextDirectory {
    /// An agent that routes a context.
    ///
    /// An agent counts as a router of a context when it does one of these:
    /// - It sends the context in an Advertise, Resolve or Complete event, with its own identity as `parentObjectId`. IO
    ///   routers set this property in every copy that they publish.
    /// - It advertises the context without a `parentObjectId`.
    /// - It publishes an Associate event with a route for the context's name.
    ///
    /// Any other agent that answers with the context only has a copy of it, which may be out of date and is ignored.
    ///
    /// An agent stops being a router when it is deadvertised, when it deadvertises the context, or when no event from
    /// it is received within ``confirmationTime`` after the gateway reconnects. A router that leaves in an orderly way
    /// dissolves its associations first. If a router is deadvertised while some of its associations exist, its
    /// connection was lost: values are still sent, and when the router returns, it does not publish unchanged
    /// associations again. The directory therefore keeps these associations for ``confirmationTime``, and then for as
    /// long as both IO nodes are known.
    struct Router {
        enum Presence: Equatable {
            case present
            /// The gateway was offline and has received no event from the router since. Dissociations that were
            /// published meanwhile are unknown, so all its associations end at this time.
            case unconfirmed(until: Duration)
            /// The router was deadvertised while associations existed. Those without known IO nodes end at this time.
            case lost(until: Duration)
            /// A lost router that did not return in time. Only associations between known IO nodes are left.
            case gone
        }

        let id: CoatyUUID
        /// The position of the first event from this router.
        let firstSerial: Int
        /// Whether the gateway has received all of its associations: it has been online since the router first advertised
        /// the context, and had room for them.
        var isFollowed: Bool
        /// The position of the last event in which it sent the context.
        var lastShown: Int?
        var presence = Presence.present
        /// The current associations of this router.
        var pairs: Set<Pair> = []

        /// Whether the directory lists it as a router.
        var isListed: Bool {
            switch presence {
            case .present, .unconfirmed: true
            case .lost, .gone: false
            }
        }

        var deadline: Duration? {
            switch presence {
            case .unconfirmed(let time), .lost(let time): time
            case .present, .gone: nil
            }
        }
    }

    /// The kind of event in which an agent sends a context.
    enum Showing {
        case advertised, resolved, completed

        /// Returns whether an agent that sends this copy of a context routes it; see ``ContextDirectory/Router``.
        func isByRouter(_ agent: CoatyUUID, _ context: JSONView) -> Bool {
            guard let parent = context["parentObjectId"]?.string else { return self == .advertised }
            return CoatyUUID(wire: parent) == agent
        }
    }
}
