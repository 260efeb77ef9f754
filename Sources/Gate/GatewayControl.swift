import Base
package import Coordination

/// Controls of the whole gateway for its operator. The gate passes it to operations.
package struct GatewayControl: Sendable {
    /// The root of the coordinator tree; nil in a test without one.
    let root: AnyCoordinator?
    /// Whether the gateway refuses new work.
    package var isPaused: Bool { root?.state == .paused }
    /// Reads the settings again and applies them. Returns the names of the settings that have changed, or throws
    /// `InvalidConfiguration`.
    let reload: @Sendable () async throws -> [String]

    package init(root: AnyCoordinator?, reload: @escaping @Sendable () async throws -> [String] = { [] }) {
        (self.root, self.reload) = (root, reload)
    }
}

/// The state of a coordinator for operators.
package struct TreeNode: Sendable {
    let name: String
    let state: CoordinatorState
    let children: [TreeNode]

    init(_ coordinator: AnyCoordinator) {
        name = coordinator.name
        state = coordinator.state
        children = coordinator.children.map(TreeNode.init)
    }

    /// Appends the node as JSON text.
    package func append(to json: inout [UInt8]) {
        json += #"{"name":"#.utf8
        JSONText.append(name, to: &json)
        json += #","state":"\#(state)","children":["#.utf8
        for (index, child) in children.enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            child.append(to: &json)
        }
        json += "]}".utf8
    }
}
