import Coaty

extension ContextDirectory {
    /// An agent that routes a context.
    ///
    /// An agent counts as a router of a context when it does one of these:
    /// - It shows the context, in an Advertise, Resolve or Complete event, with its own identity as `parentObjectId`. IO
    ///   routers set this property in every copy that they publish.
    /// - It advertises the context without a `parentObjectId`.
    /// - It publishes an Associate event with a route for the context's name.
    ///
    /// Any other agent that answers with the context only keeps a copy of it. Such a copy may be outdated and is ignored.
    ///
    /// An agent stops being a router when it is deadvertised, when it deadvertises the context, or when it isn't heard from
    /// within ``confirmationTime`` after the gateway reconnects. A router that leaves in an orderly way dissolves its
    /// associations first. If a router is deadvertised while some of its associations stand, its connection was lost: values
    /// still flow, and when the router comes back it does not publish unchanged associations again. The directory therefore
    /// keeps these associations, for ``confirmationTime`` and then for as long as both IO nodes are known.
    struct Router {
        enum Presence: Equatable {
            case present
            /// The gateway was offline and hasn't heard from the router since. Nothing is known about dissociations that were
            /// published meanwhile, so all its associations end at this time.
            case unconfirmed(until: Duration)
            /// The router was deadvertised while associations stood. Those without known IO nodes end at this time.
            case lost(until: Duration)
            /// A lost router that did not come back in time. Only associations between known IO nodes are left.
            case gone
        }

        let id: CoatyUUID
        /// The position of the first event from this router.
        let firstHeard: Int
        /// The position of the latest event in which it showed the context.
        var lastShown: Int?
        var presence = Presence.present
        /// The associations that this router published last.
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

    /// How an agent shows a context.
    enum Showing {
        case advertised, resolved, completed

        /// Whether an agent that shows this copy of a context routes it; see ``ContextDirectory/Router``.
        func isByRouter(_ agent: CoatyUUID, _ context: JSONView) -> Bool {
            guard let parent = context["parentObjectId"]?.string else { return self == .advertised }
            return CoatyUUID(wire: parent) == agent
        }
    }
}
