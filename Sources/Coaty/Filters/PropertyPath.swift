/// The names on the path to a property, hashed once, because conditions look up the same names in each object.
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

    /// Returns the value in an object; nil if there is none.
    func value(in object: JSONView) -> JSONView? { object.value(at: names.lazy.map(\.text)) }

    /// Returns the value where the first name is that of an object.
    func value(inRoots roots: (String) -> JSONView?) -> JSONView? {
        guard let name = names.first, let root = roots(name.text) else { return nil }
        return root.value(at: names.dropFirst().lazy.map(\.text))
    }

    var footprint: Int { names.reduce(48) { $0 + MemoryLayout<WireName>.stride + $1.footprint } }
}

extension JSONView {
    /// Returns the value at the end of a path such as ``ObjectFilterProperty/names``; nil if there is none.
    public func value(at path: some Sequence<String>) -> JSONView? {
        var view = self
        for name in path {
            if view.kind == .array {
                guard let element = view.element(named: name) else { return nil }
                view = element
            } else {
                guard let index = view.document.member(named: name, of: view.index) else { return nil }
                // A new view would retain the document.
                view.index = index
            }
        }
        return view
    }

    /// Returns the member or element with one name of a path.
    func child(named name: String) -> JSONView? {
        kind == .array ? element(named: name) : member(named: name)
    }

    private func element(named name: String) -> JSONView? {
        if name == "length" { return (try? JSONDocument(Array("\(childCount)".utf8)))?.root }
        guard let position = Int(name), "\(position)" == name else { return nil }
        return element(at: position)
    }
}
