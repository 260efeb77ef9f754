package import Coaty

extension RoutingAdmin {
    /// The state of a context.
    package struct Snapshot: Sendable {
        /// The content of a context.
        enum Content: Sendable {
            case hosted(IoRoutingState)
            case foreign(nodes: [JSONView], associations: [IoAssociation], isComplete: Bool)
        }

        package let json: JSONView
        package let router: CoatyUUID?
        package let otherRouters: [CoatyUUID]
        let content: Content

        package var isHosted: Bool { if case .hosted = content { true } else { false } }

        /// The IO nodes, in the order in which they were added.
        package var nodes: [JSONView] {
            switch content {
            case .hosted(let state): state.nodes
            case .foreign(let nodes, _, _): nodes
            }
        }

        /// The associations. They are collected on each access, which takes long if there are many.
        package var associations: [IoAssociation] {
            switch content {
            case .hosted(let state): state.associations
            case .foreign(_, let associations, _): associations
            }
        }

        /// Whether no association is known to be missing.
        package var isComplete: Bool { if case .foreign(_, _, let isComplete) = content { isComplete } else { true } }
    }
}
