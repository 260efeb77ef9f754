import Base
import Coaty

/// The object properties that a client selected, as a tree that follows the nesting of the object.
struct FieldTree: Sendable, Hashable {
    /// Maximum nesting depth of a property.
    static let maximumDepth = 16

    private struct Child: Hashable {
        let name: WireName
        /// Nil selects the whole property.
        var tree: FieldTree?
    }

    /// The selected properties in the client's order.
    private var children: [Child] = []

    /// Selects the given properties, and always `objectId`, which comes first.
    init(_ properties: [ObjectFilterProperty]) {
        insert(["objectId"])
        for property in properties { insert(property.names[...]) }
    }

    /// The number of bytes that the tree uses.
    var footprint: Int { children.reduce(0) { $0 + 64 + $1.name.text.utf8.count + ($1.tree?.footprint ?? 0) } }

    private init() {}

    private mutating func insert(_ path: ArraySlice<String>) {
        guard let name = path.first.map({ WireName($0) }) else { return }
        let rest = path.dropFirst()
        guard let index = children.firstIndex(where: { $0.name == name }) else {
            var tree: FieldTree?
            if !rest.isEmpty {
                tree = FieldTree()
                tree?.insert(rest)
            }
            children.append(Child(name: name, tree: tree))
            return
        }
        // A whole property includes all of its parts.
        if rest.isEmpty { children[index].tree = nil } else { children[index].tree?.insert(rest) }
    }

    /// Appends an object with only the selected properties. Appends a value that is not an object unchanged.
    func append(_ view: JSONView, to text: inout [UInt8]) {
        guard view.kind == .object else {
            text += view.bytes
            return
        }
        text.append(UInt8(ascii: "{"))
        var isFirst = true
        for child in children {
            guard let value = view.member(named: child.name.text) else { continue }
            if !isFirst { text.append(UInt8(ascii: ",")) }
            isFirst = false
            JSONText.append(child.name.text, to: &text)
            text.append(UInt8(ascii: ":"))
            if let tree = child.tree { tree.append(value, to: &text) } else { text += value.bytes }
        }
        text.append(UInt8(ascii: "}"))
    }
}
