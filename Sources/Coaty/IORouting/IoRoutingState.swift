/// The IO nodes and associations of a router at one time.
///
/// It shares its storage with the router, so taking it costs nothing, and it can be read on any thread while the router
/// makes further changes.
public struct IoRoutingState: Sendable {
    let table: IoRoutingTable

    /// The JSON of the IO nodes, in the order in which they were added.
    public var nodes: [JSONView] { table.nodes.map(\.json) }

    /// The associations, in the order of the nodes. They are collected on each access, which takes long if there are
    /// many.
    public var associations: [IoAssociation] { table.associations }
}
