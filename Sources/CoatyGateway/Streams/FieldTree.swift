import Coaty

/// The properties that a client wants of an object, nested as they are in it.
struct FieldTree: Sendable {
    /// Most properties that can be named.
    static let maximumFields = 100
    /// How deep a property may be nested.
    static let maximumDepth = 16

    /// By name, in the order in which they were named; nil for a property as a whole.
    private var children: [(name: WireName, tree: FieldTree?)] = []

    /// The properties of paths, and the object's id with them.
    init(_ properties: [ObjectFilterProperty]) {
        insert(["objectId"])
        for property in properties { insert(property.names[...]) }
    }

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
            children.append((name, tree))
            return
        }
        // The whole of a property includes each part of it.
        if rest.isEmpty { children[index].tree = nil } else { children[index].tree?.insert(rest) }
    }

    /// Appends what an object has of the properties; what is no object as it is.
    func append(_ view: JSONView, to text: inout [UInt8]) {
        guard view.kind == .object else {
            text += view.bytes
            return
        }
        text.append(UInt8(ascii: "{"))
        var isFirst = true
        for (name, tree) in children {
            guard let value = view.member(named: name.text) else { continue }
            if !isFirst { text.append(UInt8(ascii: ",")) }
            isFirst = false
            JSONText.append(name.text, to: &text)
            text.append(UInt8(ascii: ":"))
            if let tree { tree.append(value, to: &text) } else { text += value.bytes }
        }
        text.append(UInt8(ascii: "}"))
    }
}
