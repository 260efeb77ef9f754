/// The names that lead to a property, hashed once: conditions look the same ones up in each object.
struct PropertyPath: Sendable, Hashable {
    let names: [WireName]
    private let digest: Int

    init(_ property: ObjectFilterProperty) {
        names = property.names.map(WireName.init)
        digest = names.hashValue
    }

    static func == (left: PropertyPath, right: PropertyPath) -> Bool {
        left.digest == right.digest && left.names == right.names
    }

    func hash(into hasher: inout Hasher) { hasher.combine(digest) }

    /// Finds the value in an object; nil where there is none.
    func value(in object: JSONView) -> JSONView? { object.value(at: names.lazy.map(\.text)) }

    /// Finds the value where the first name is that of an object.
    func value(inRoots roots: (String) -> JSONView?) -> JSONView? {
        guard let name = names.first, let root = roots(name.text) else { return nil }
        return root.value(at: names.dropFirst().lazy.map(\.text))
    }

    var footprint: Int { names.reduce(48) { $0 + MemoryLayout<WireName>.stride + $1.footprint } }
}

extension JSONView {
    /// The value at the end of a path, as that of ``ObjectFilterProperty/names``; nil where there is none.
    package func value(at path: some Sequence<String>) -> JSONView? {
        var view = self
        for name in path {
            if view.kind == .array {
                guard let element = view.element(named: name) else { return nil }
                view = element
            } else {
                guard let index = view.document.member(named: name, of: view.index) else { return nil }
                // Not a new view: it would retain the document.
                view.index = index
            }
        }
        return view
    }

    /// The member or element that one name of a path leads to.
    func child(named name: String) -> JSONView? {
        kind == .array ? element(named: name) : member(named: name)
    }

    private func element(named name: String) -> JSONView? {
        if name == "length" { return (try? JSONDocument(Array("\(childCount)".utf8)))?.root }
        guard let position = Int(name), "\(position)" == name else { return nil }
        return element(at: position)
    }
}
