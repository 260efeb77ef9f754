import Coaty

extension RoutingAdmin {
    /// The state of a context.
    struct Snapshot: Sendable {
        /// The content of a context.
        enum Content: Sendable {
            case hosted(IoRoutingState)
            case foreign(nodes: [JSONView], associations: [IoAssociation], isComplete: Bool)
        }

        let json: JSONView
        let router: CoatyUUID?
        let otherRouters: [CoatyUUID]
        let content: Content

        var isHosted: Bool { if case .hosted = content { true } else { false } }

        /// The IO nodes, in the order in which they were added.
        var nodes: [JSONView] {
            switch content {
            case .hosted(let state): state.nodes
            case .foreign(let nodes, _, _): nodes
            }
        }

        /// The associations. They are collected on each access, which takes long if there are many.
        var associations: [IoAssociation] {
            switch content {
            case .hosted(let state): state.associations
            case .foreign(_, let associations, _): associations
            }
        }

        /// Whether no association is known to be missing.
        var isComplete: Bool { if case .foreign(_, _, let isComplete) = content { isComplete } else { true } }
    }
}
