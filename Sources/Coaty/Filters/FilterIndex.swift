/// An index that finds the conditions that can hold for an object by the values of its properties.
///
/// It is a trie over the names of paths, with the values at its nodes. On each level, a search iterates over the
/// smaller of the trie and the object: its cost depends neither on the number of indexed values, nor on the number of
/// paths that the object does not have.
package struct FilterIndex<ID: Hashable & Sendable>: Sendable {
    private struct Node: Sendable {
        var children: [WireName: Node] = [:]
        var ids: [Scalar: Set<ID>] = [:]

        var isEmpty: Bool { children.isEmpty && ids.isEmpty }
    }

    private var root = Node()

    /// Creates an empty index.
    package init() {}

    /// Whether the index has no conditions.
    package var isEmpty: Bool { root.isEmpty }

    /// Adds a condition.
    ///
    /// - Parameter keys: its ``CompiledCondition/accessKeys``.
    package mutating func insert(_ id: ID, keys: [AccessKey]) {
        for key in keys {
            Self.update(&root, key.path[...]) { $0.ids[key.value, default: []].insert(id) }
        }
    }

    /// Removes a condition that has been added with the same keys.
    package mutating func remove(_ id: ID, keys: [AccessKey]) {
        for key in keys {
            Self.update(&root, key.path[...]) { node in
                guard var ids = node.ids.removeValue(forKey: key.value) else { return }
                ids.remove(id)
                if !ids.isEmpty { node.ids[key.value] = ids }
            }
        }
    }

    /// Changes the node of a path, and removes empty nodes.
    private static func update(_ node: inout Node, _ path: ArraySlice<WireName>, _ change: (inout Node) -> Void) {
        guard let name = path.first else { return change(&node) }
        update(&node.children[name, default: Node()], path.dropFirst(), change)
        if node.children[name]?.isEmpty ?? true { node.children[name] = nil }
    }

    /// Returns the conditions for which the object has a key, each once, in no particular order. All other conditions
    /// do not hold.
    ///
    /// A search takes at most the time of reading the object once, or of visiting the trie once, and finds all such
    /// conditions.
    package func candidates(in object: JSONView) -> [ID] {
        var found: [Set<ID>] = []
        Self.collect(root, object, &found)
        guard let first = found.first else { return [] }
        guard found.count > 1 else { return Array(first) }
        return Array(found.dropFirst().reduce(into: first) { $0.formUnion($1) })
    }

    private static func collect(_ node: Node, _ view: JSONView, _ found: inout [Set<ID>]) {
        if !node.ids.isEmpty, view.bytes.count <= maximumBytes, let scalar = Scalar(view), let ids = node.ids[scalar] {
            found.append(ids)
        }
        guard !node.children.isEmpty, view.hasParts else { return }
        if node.children.count <= view.childCount {
            for (name, child) in node.children {
                if let value = view.child(named: name.text) { collect(child, value, &found) }
            }
        } else if view.kind == .array {
            for (position, element) in view.elements.enumerated() {
                if let child = node.children[WireName("\(position)")] { collect(child, element, &found) }
            }
            if let child = node.children[WireName("length")], let length = view.child(named: "length") {
                collect(child, length, &found)
            }
        } else {
            for (key, value) in view.members {
                guard let name = key.string, let child = node.children[WireName(name)],
                    // Of members with the same name, the last one wins.
                    let last = view.member(named: name), last.index == value.index
                else { continue }
                collect(child, value, &found)
            }
        }
    }

    /// A longer string can't be a key, however many escapes it contains.
    private static var maximumBytes: Int { 6 * AccessKey.maximumLength + 2 }
}
